#!/usr/bin/env bash
# fuzz_text.c under libFuzzer with the sanitizers: first the inputs in corpus/, then new ones for
# NBC_TEXT_SECONDS (10). An input that fails is kept in test/text/ of the build tree.

. "$(dirname "$0")/../lib.sh"
seconds=${NBC_TEXT_SECONDS:-10}
sources="src/rules.c src/select.c src/json.c src/tuning.c src/coll.c src/nodes.c pmpi/base/settings.c pmpi/base/hints.c
    tools/nbcsim/network.c tools/nbcsim/list.c test/text/fuzz_text.c"

# The readers are instrumented; the algorithms, to which rules refer, are those of the library.
build()
{
    local file flags="-std=gnu11 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined"
    for file in $sources; do
        clang $flags -DHAVE_CONFIG_H -I. -iquote "$srcdir/src" -iquote "$srcdir/pmpi" \
            -iquote "$srcdir/tools/nbcsim" -I"$srcdir/include" $MPI_CPPFLAGS \
            -c "$srcdir/$file" -o "$scratch/$(basename "$file" .c).o" || return
    done
    clang $flags "$scratch"/*.o -o "$scratch/fuzz_text" .libs/libnbc_core.a $MPI_LIBS -lm
}

fuzz() # libFuzzer's options and inputs...
{
    "$scratch/fuzz_text" -timeout=10 -rss_limit_mb=1024 -close_fd_mask=3 \
        -artifact_prefix=test/text/ "$@"
}

if ! command -v clang >/dev/null; then
    echo "1..0 # SKIP clang is not installed"
    exit 0
fi
mkdir -p test/text "$scratch/new"
expect "fuzz_text compiles" build
expect "the corpus" fuzz -runs=0 "$srcdir/test/text/corpus"
expect "new inputs for $seconds seconds" fuzz -max_total_time="$seconds" -max_len=1000 \
    -dict="$srcdir/test/text/words" "$scratch/new" "$srcdir/test/text/corpus"
finish
