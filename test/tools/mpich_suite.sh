#!/usr/bin/env bash
# test/run-mpich-suite: reads testlists as they are written, and tells what passes without nbcshim
# and not with it. The suite is a small one made here.

. "$(dirname "$0")/../lib.sh"
suite=$scratch/suite
mkdir -p "$suite"/{coll/deep,errors/coll,comm}

run()
{
    srcdir=$srcdir python3 "$srcdir/test/run-mpich-suite" "$@"
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

listed() # TEXT: a line of --list has it
{
    run "$suite" --list 2>/dev/null | grep -F -- "$1" || ! echo "no line has: $1"
}

lists_in_order()
{
    local names
    names=$(run "$suite" --list 2>/dev/null | sed "s/.*program='\([a-z_]*\)'.*/\1/" | tr '\n' ' ')
    echo "$names"
    [ "$names" = "good works_both_ways nested later broken fine aborts " ]
}

complains()
{
    run "$suite" --list 2>&1 >"$scratch/out" | tee "$scratch/errors"
    [ "$(wc -l <"$scratch/errors")" = 2 ] && grep -q "what is colour=blue" "$scratch/errors" &&
        grep -q "no number of ranks" "$scratch/errors"
}

expect "tests come in the order of the lists, directories where they are named" lists_in_order
expect "a line that is not understood is told, and no other is lost" complains
expect "ranks and a time limit" listed "program='works_both_ways', ranks=3, arguments=[], launcher=[], environment=[], limit=7"
expect "arguments, variables, success by status" listed "program='nested', ranks=2, arguments=['-a', '-b'], launcher=[], environment=['X=1'], limit=180, version=(0, 0), expect='status'"
expect "a directory in a directory" listed "directory='coll/deep'"
expect "versions" listed "version=(99, 0)"
expect "expected failures" listed "xfail='ticket99'"
expect "failing is success" listed "program='aborts', ranks=2, arguments=[], launcher=[], environment=[], limit=180, version=(0, 0), expect='failure'"
expect "zero ranks are as many as usual" listed "program='fine', ranks=2"

# --- running --------------------------------------------------------------------------------------

cat >"$scratch/program.c" <<'END'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#pragma weak nbcshim_version
int nbcshim_version(void);

int main(int argc, char **argv)
{
    int rank, sum = 0, one = 1, wrong;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#if MPI_VERSION < 3 /* it runs without nbcshim, too */
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
#else
    MPI_Request r;
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
#endif
    wrong = BREAKS && nbcshim_version;
    if (STOPS)
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (SLEEPS)
        sleep(30);
    if (rank == 0)
        printf(wrong ? "Found 1 error\n" : " No Errors\n");
    MPI_Finalize();
    return SUMS && (sum != 2 || argc != 3 || !getenv("X"));
}
END

compile() # FILE MACRO...
{
    local file=$1 macro options=()
    shift
    for macro in BREAKS STOPS SLEEPS SUMS; do
        case " $* " in
        *" $macro "*) options+=("-D$macro=1") ;;
        *) options+=("-D$macro=0") ;;
        esac
    done
    # The library of a sanitized build runs in programs that are not.
    $CC -o "$suite/$file" "${options[@]}" "$scratch/program.c" $MPI_CPPFLAGS $MPI_LIBS
}

compile coll/good && compile coll/works_both_ways && compile coll/deep/nested SUMS &&
    compile coll/later && compile coll/broken BREAKS && compile errors/coll/aborts STOPS ||
    result 1 "the suite compiles"

all_is_well()
{
    run "$suite" 2>/dev/null | tee "$scratch/out"
    [ "${PIPESTATUS[0]}" = 0 ] &&
        grep -qx "4 tests, 0 pass without nbcshim and not with it" "$scratch/out" &&
        grep -q "not run: 1 for a later version" "$scratch/out" &&
        grep -q "not run: 1 expected to fail" "$scratch/out" &&
        grep -q "not run: 1 not built" "$scratch/out"
}

a_regression_is_named()
{
    echo 'broken 2' >"$suite/coll/testlist"
    run "$suite" coll >"$scratch/out"
    [ $? = 1 ] || return
    cat "$scratch/out"
    grep -qx "passes without nbcshim, with it: fail: coll/broken 2" "$scratch/out" &&
        grep -qE '^coll +1 +0 +0 +0 +1 +0$' "$scratch/out"
}

time_runs_out()
{
    compile coll/good SLEEPS
    echo 'good 2 timeLimit=2' >"$suite/coll/testlist"
    run "$suite" coll >"$scratch/out"
    cat "$scratch/out"
    grep -qE '^coll +0 +0 +1 +0 +0 +1$' "$scratch/out" && ! pgrep -f "$suite/coll" >/dev/null
}

if [ "$SANITIZE" = no ]; then
    expect "a suite that is well" all_is_well
    expect "what only nbcshim breaks is named, and is the exit status" a_regression_is_named
    expect "a test that takes too long is ended, and counted so" time_runs_out
fi

finish
