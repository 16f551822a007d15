#!/usr/bin/env bash
# The parts of pages that commands write are up to date, pages stay of a length that a person reads, and
# "make dist" finds its files.

. "$(dirname "$0")/../lib.sh"

if command -v python3 >/dev/null; then
    expect "the map of the files is up to date (else: doc/map)" "$srcdir/doc/map" --check
    expect "doc/performance.md has the numbers of doc/performance/ (else: bench/pages)" \
        "$srcdir/bench/pages" --check
else
    echo "ok $((cases += 1)) - generated pages # SKIP no python3"
fi
while read -r page most; do
    lines=$(wc -l <"$srcdir/$page")
    expect "$page has at most $most lines: $lines" test "$lines" -le "$most"
done <<'END'
README 130
doc/performance.md 200
doc/testing.md 160
END
expect "every file of a release is there" env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -n distdir

finish
