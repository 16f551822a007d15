#!/usr/bin/env bash
# test/run-mpich-suite: reads testlists as they are written, and tells what passes without nbcshim
# and not with it. The suite is a small one made here.

. "$(dirname "$0")/../lib.sh"
suite=$scratch/suite
mkdir -p "$suite"/{coll/deep,errors/coll,comm}

run()
{
    srcdir=$srcdir python3 "$srcdir/test/run-mpich-suite" "$suite" "$@"
}

# --- reading --------------------------------------------------------------------------------------

cat >"$suite/coll/testlist" <<'END'
# a comment
good 2
works_both_ways 3 timeLimit=7   # and one behind a line
deep

later 2 mpiversion=99.0
broken 4 xfail=ticket99 strict=FALSE
END
echo 'nested 2 arg=-a arg=-b env=X=1 resultTest=TestStatus' >"$suite/coll/deep/testlist"
printf 'coll\nno_such_directory\n' >"$suite/errors/testlist"
echo 'aborts 2 resultTest=TestErrFatal' >"$suite/errors/coll/testlist"
printf 'many words here\nodd 2 colour=blue\nfine 0 mpiversion=3.1\n' >"$suite/comm/testlist"

run --list >"$scratch/read" 2>"$scratch/errors"
expect "tests come in the order of the lists, directories where they are named" diff "$scratch/read" - <<'END'
Test(directory='coll', program='good', ranks=2, arguments=[], launcher=[], environment=[], limit=180, version=(0, 0), expect='output', xfail='')
Test(directory='coll', program='works_both_ways', ranks=3, arguments=[], launcher=[], environment=[], limit=7, version=(0, 0), expect='output', xfail='')
Test(directory='coll/deep', program='nested', ranks=2, arguments=['-a', '-b'], launcher=[], environment=['X=1'], limit=180, version=(0, 0), expect='status', xfail='')
Test(directory='coll', program='later', ranks=2, arguments=[], launcher=[], environment=[], limit=180, version=(99, 0), expect='output', xfail='')
Test(directory='coll', program='broken', ranks=4, arguments=[], launcher=[], environment=[], limit=180, version=(0, 0), expect='output', xfail='ticket99')
Test(directory='comm', program='fine', ranks=2, arguments=[], launcher=[], environment=[], limit=180, version=(3, 1), expect='output', xfail='')
Test(directory='errors/coll', program='aborts', ranks=2, arguments=[], launcher=[], environment=[], limit=180, version=(0, 0), expect='failure', xfail='')
END
expect "a line that is not understood is told, and no other is lost" diff "$scratch/errors" - <<'END'
testlist: comm: 'many words here': no number of ranks
testlist: comm: 'odd 2 colour=blue': what is colour=blue?
END

# --- running --------------------------------------------------------------------------------------

# What it does depends on its name.
cat >"$scratch/program.c" <<'END'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
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
    if (strstr(argv[0], "aborts"))
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (strstr(argv[0], "sleeps"))
        sleep(30);
    if (rank == 0)
        puts(strstr(argv[0], "broken") && nbcshim_version ? "Found 1 error" : " No Errors");
    MPI_Finalize();
    return strstr(argv[0], "nested") && (sum != 2 || argc != 3 || !getenv("X"));
}
END
# The library of a sanitized build runs in programs that are not.
$CC -o "$scratch/program" "$scratch/program.c" $MPI_CPPFLAGS $MPI_LIBS || result 1 "the suite compiles"
for name in coll/{good,works_both_ways,deep/nested,later,broken,sleeps} errors/coll/aborts; do
    cp "$scratch/program" "$suite/$name"
done

# says STATUS DIRECTORY LINE...: run-mpich-suite, of a directory or all, ends so, and prints lines that match.
says()
{
    local line
    run ${2:+"$2"} >"$scratch/out" 2>/dev/null
    [ $? = "$1" ] || return
    cat "$scratch/out"
    for line in "${@:3}"; do
        grep -qxE "$line" "$scratch/out" || return
    done
}

time_runs_out()
{
    says 0 coll 'coll +0 +0 +1 +0 +0 +1' && ! pgrep -f "$suite/coll" >/dev/null
}

if [ "$SANITIZE" = no ]; then
    expect "a suite that is well" says 0 "" "4 tests, 0 pass without nbcshim and not with it" \
        "not run: 1 for a later version of MPI" "not run: 1 expected to fail" "not run: 1 not built"
    echo 'broken 2' >"$suite/coll/testlist"
    expect "what only nbcshim breaks is named, and is the exit status" says 1 coll \
        "passes without nbcshim, with it: fail: coll/broken 2" 'coll +1 +0 +0 +0 +1 +0'
    echo 'sleeps 2 timeLimit=2' >"$suite/coll/testlist"
    expect "a test that takes too long is ended, and counted so" time_runs_out
fi

finish
