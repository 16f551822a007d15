#!/usr/bin/env bash
# Everything that reads text from outside, under libFuzzer with the sanitizers: fuzz_text.c has the
# readers of the library and of descriptions of networks, fuzz_nbcinfo.c and the others a program each.
# First the inputs in the tree, then new ones for NBC_TEXT_SECONDS (5) together. An input that fails is
# kept in test/text/ of the build tree.

. "$(dirname "$0")/../lib.sh"
seconds=${NBC_TEXT_SECONDS:-5}

# What is instrumented, of each target besides fuzz_TARGET.c. The algorithms and the simulation are those
# of the libraries.
read_rules="src/rules.c src/select.c src/json.c src/coll.c"
declare -A sources=(
    [text]="$read_rules src/tuning.c src/nodes.c pmpi/base/settings.c pmpi/base/hints.c
        tools/nbcsim/network.c tools/nbcsim/list.c"
    [nbcinfo]="$read_rules tools/call.c tools/emit.c tools/picture.c tools/sched_print.c"
    [nbcsim]="$read_rules tools/nbcsim/network.c tools/nbcsim/list.c tools/meter.c"
    [nbccompare]="src/json.c tools/compare/figures.c tools/compare/names.c tools/compare/page.c tools/compare/runs.c
        tools/emit.c"
)
declare -A libraries=(
    [nbcinfo]="-L.libs -lnbcshim -Wl,-rpath,$PWD/.libs"
    [nbcsim]=.libs/libnbcsim.a
    [nbccompare]=.libs/libnbcsim.a # has gnuplot.c
)
# The inputs in the tree, and the share of the time.
declare -A corpus=([text]=corpus [nbcinfo]=nbcinfo [nbcsim]=nbcsim [nbccompare]=nbccompare)
declare -A share=([text]=4 [nbcinfo]=2 [nbcsim]=2 [nbccompare]=2)
targets="text nbcinfo nbcsim nbccompare"
# A library with gcc's sanitizer cannot be in a program with clang's.
[ "$SANITIZE" = no ] || targets="text nbcsim nbccompare"
# clang takes three times as long with -O1; the inputs in the tree are short.
flags="-std=gnu11 -D_GNU_SOURCE= -g ${NBC_SOAK:+-O1} -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined"

# A file that several targets need is compiled once.
object() # source
{
    local object=$scratch/$(basename "$1" .c).o
    [ ! -f "$object" ] || return 0
    clang $flags -DHAVE_CONFIG_H -I. -iquote "$srcdir/src" -iquote "$srcdir/pmpi" -iquote "$srcdir/tools" \
        -iquote "$srcdir/tools/nbcsim" -iquote "$srcdir/tools/compare" -I"$srcdir/include" $MPI_CPPFLAGS \
        -c "$srcdir/$1" -o "$object"
}

build() # target
{
    local file objects=
    for file in ${sources[$1]} "test/text/fuzz_$1.c"; do
        object "$file" || return
        objects="$objects $scratch/$(basename "$file" .c).o"
    done
    clang $flags $objects -o "$scratch/fuzz_$1" ${libraries[$1]} .libs/libnbc_core.a $MPI_LIBS -lm
}

# For libFuzzer: the words that the readers of a target compare with, the names of the tables, the options, and
# numbers at limits.
words() # target
{
    (cd "$srcdir" && grep -hv '^#include' ${sources[$1]} | grep -oE '"[^"%\\\\]{2,30}"')
    (cd "$srcdir" && sed -nE 's/^(ALG|COLL)\([A-Z_]+, (\w+),.*/"\2"/p' src/algs.def src/colls.def)
    [ ! -f "completion/_$1" ] || sed -nE "s/^ +'(--?[a-z-]+).*/\"\1\"/p" "completion/_$1"
    printf '"%s"\n' 0 1 2 -1 .. inf nan 0x10 1K 1G 8M 1e308 1e999 2147483648 9223372036854775807 \
        9223372036854775808 18446744073709551616 = '\x0a' '\x09' '\x0a-\x0a'
}

fuzz() # target, libFuzzer's options and inputs...
{
    local target=$1
    shift
    "$scratch/fuzz_$target" -timeout=10 -rss_limit_mb=1024 -close_fd_mask=3 \
        -artifact_prefix="test/text/$target-" "$@" </dev/null
}

if ! command -v clang >/dev/null; then
    echo "1..0 # SKIP clang is not installed"
    exit 0
fi
forget_settings
mkdir -p test/text
for target in $targets; do
    inputs=$srcdir/test/text/${corpus[$target]}
    mkdir "$scratch/$target"
    limit=$((seconds * ${share[$target]} / 10))
    expect "fuzz_$target compiles" build $target
    words $target | sort -u >"$scratch/words"
    expect "$target: the inputs in the tree" fuzz $target -runs=0 "$inputs"
    expect "$target: new inputs for $limit seconds" fuzz $target -max_total_time=$((limit > 0 ? limit : 1)) \
        -max_len=1000 -dict="$scratch/words" "$scratch/$target" "$inputs"
done
finish
