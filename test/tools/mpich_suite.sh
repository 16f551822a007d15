#!/usr/bin/env bash
# test/run-mpich-suite: tells what passes without nbcshim and not with it. The suite and its runtests are small ones
# made here.

. "$(dirname "$0")/../lib.sh"
suite=$scratch/suite
mkdir -p "$suite"/{coll,comm}

# What it does depends on its name.
cat >"$scratch/program.c" <<'END'
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#pragma weak nbcshim_version
int nbcshim_version(void);

int main(int argc, char **argv)
{
    int rank, sum = 0, one = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#if MPI_VERSION < 3 /* it runs without nbcshim, too */
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
#else
    MPI_Request r;
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
#endif
    int bad = strstr(argv[0], "wrong") || (strstr(argv[0], "broken") && nbcshim_version);
    if (rank == 0)
        puts(sum != 2 || bad ? "Found 1 error" : " No Errors");
    return MPI_Finalize();
}
END
$CC -o "$scratch/program" "$scratch/program.c" $MPI_CPPFLAGS $MPI_LIBS || result 1 "the suite compiles"
for name in coll/{good,wrong} comm/{good,broken}; do
    cp "$scratch/program" "$suite/$name"
done
printf 'good 2\nwrong 2\nlater 2\n' >"$suite/coll/testlist"
printf 'good 2\nbroken 2\n' >"$suite/comm/testlist"
cat >"$suite/runtests" <<'END'
#!/bin/bash
for argument; do
    declare "${argument#-}"
done
: >"$tapfile"
while read -r name ranks; do
    n=$((n + 1)) state="not ok" comment="time=1.5"
    [ -x "$name" ] || comment="SKIP it is for a later version"
    said=$($mpiexec -n $ranks ./$name </dev/null 2>&1)
    [ "$said" != " No Errors" ] && [ -x "$name" ] || state=ok
    printf '%s %d - ./%s %d # %s\n## %s\n' "$state" $n "$name" "$ranks" "$comment" "$said" >>"$tapfile"
done <$tests
END
chmod +x "$suite/runtests"

# says STATUS DIRECTORY LINE...: run-mpich-suite, of a directory or all, ends so, and prints lines that match.
says()
{
    local line
    "$srcdir/test/run-mpich-suite" "$suite" ${2:+"$2"} >"$scratch/out" 2>&1
    [ $? = "$1" ] || { cat "$scratch/out" && return 1; }
    for line in "${@:3}"; do
        grep -qxE "$line" "$scratch/out" || { cat "$scratch/out" && return 1; }
    done
}

# The library of a sanitized build runs in programs that are not.
if [ "$SANITIZE" = no ]; then
    expect "a directory that is well, and has a test that fails natively" says 0 coll 'coll +1 +1 +1 +1' \
        "0 tests pass without nbcshim and not with it"
    expect "what only nbcshim breaks is named, and is the exit status" says 1 "" 'coll +1 +1 +1 +1' \
        'comm +2 +0 +1 +1' "passes without nbcshim and not with it: comm/broken 2" '    Found 1 error'
fi
refuses "a directory without runtests" '^usage: ' "$srcdir/test/run-mpich-suite" "$scratch"
finish
