#!/usr/bin/env bash
# Programs linked with the MPI before nbcshim, or that take MPI_Init from the MPI. With the shared
# library their calls bypass nbcshim: it says so, and no collective of it crashes. The static library
# works in any order.

. "$(dirname "$0")/../lib.sh"
forget_settings

cat >"$scratch/program.c" <<'END'
#include <nbcshim.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int error = MPI_SUCCESS;
    MPI_Init(&argc, &argv);
#ifdef RETURN
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
#endif
#ifdef NONBLOCKING
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
#else
    error = MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    if (!error)
        MPI_Start(&request);
#endif
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (request != MPI_REQUEST_NULL)
        MPI_Request_free(&request);
    /* In one piece: MPICH makes standard output unbuffered, and puts would write twice. */
    printf("%s %d\n", error ? "refused" : "completed", error != MPI_SUCCESS);
    MPI_Finalize();
    return 0;
}
END

compile() # name arguments...
{
    local name=$1
    shift
    $CC -std=gnu11 -I"$srcdir/include" $MPI_CPPFLAGS $CFLAGS "$scratch/program.c" \
        -Wl,-rpath,"$PWD/.libs" -L"$PWD/.libs" -o "$scratch/$name" "$@" $NBC_LDFLAGS
}

compile_past() # name flags...
{
    local name=$1
    shift
    $CC -std=gnu11 -DPERSISTENT "$@" -I"$srcdir/include" $MPI_CPPFLAGS "$srcdir/test/tools/past.c" \
        -o "$scratch/$name" -L"$PWD/.libs" -l$NBC_NAME $MPI_LIBS -ldl -Wl,-rpath,"$PWD/.libs"
}

program() # preload variables name
{
    mpi_command 2 "$(sanitizer_runtime) $1" "$2" "$scratch/$3"
}

wrong="-Wl,--no-as-needed $MPI_LIBS -l$NBC_NAME"
expect "a program of persistent collectives links with the MPI first" compile persistent $wrong
expect "one that handles errors" compile return -DRETURN $wrong
expect "one of nonblocking collectives" compile nonblocking -DNONBLOCKING $wrong

program "" "" nonblocking
if mpi_has Ibarrier; then
    ends_well "nonblocking collectives are the MPI's" 60
    log_has 2 "nonblocking collectives complete" '^completed 0$'
else
    guarded 60 "$scratch/log" "${launch[@]}"
    grep -q 'MPI_Ibarrier failed: this MPI lacks it, and the dynamic linker searches ' "$scratch/log"
    result $? "a nonblocking collective that the MPI lacks ends the program, which says why"
fi
log_has 1 "one rank says that nbcshim has no effect, and why" \
    'nbcshim: without effect: the dynamic linker searches .*libmpi.* before nbcshim'
program "" NBCSHIM=off nonblocking
if mpi_has Ibarrier; then
    ends_well "with NBCSHIM=off" 60
else
    guarded 60 "$scratch/log" "${launch[@]}"
fi
log_has 0 "it says nothing" 'without effect'

# An MPI that has persistent collectives carries them out; one that lacks them has nobody who does.
if $CC $MPI_CPPFLAGS -Wl,--no-as-needed -x c - -o "$scratch/has" $MPI_LIBS 2>/dev/null \
    <<<'int MPI_Barrier_init(void); int main(void) { return MPI_Barrier_init(); }'; then
    program "" "" persistent
    ends_well "persistent collectives are the MPI's" 60
    log_has 2 "persistent collectives complete" '^completed 0$'
else
    program "" "" persistent
    ends_badly "a persistent collective that the MPI lacks ends the program" 60
    log_has 0 "no rank crashes" 'Segmentation|[Ss]ignal'
    grep -q 'MPI_Barrier_init failed: this MPI lacks it, and the dynamic linker searches .*libmpi.* before' \
        "$scratch/log"
    result $? "it says why"
    log_has 0 "it does not say that NBCSHIM=on would help" 'NBCSHIM=on'
    program "" "" return
    ends_well "a program that handles errors goes on" 60
    log_has 2 "it has the error and no request" '^refused 1$'

    expect "a program with a communicator that nbcshim does not know compiles" compile_past unknown -DUNKNOWN
    program "" "" unknown
    ends_well "it goes on" 60
    log_has 2 "it has an error and no request" '^refused 1$'
    log_has 2 "each rank says why" \
        '^nbcshim: MPI_Barrier_init failed: this MPI lacks it, and nbcshim does not know the communicator, which was freed, made past nbcshim, or '

    expect "a program that takes MPI_Init from the MPI compiles" compile_past past
    program "" "" past
    ends_badly "a persistent collective ends it" 60
    expect "it says why" grep -q "lacks it, and the program called the MPI's own MPI_Init" "$scratch/log"
fi

program "$library" NBCSHIM_STATS=1 persistent
ends_well "preloaded, the program runs with nbcshim" 60
log_has 1 "by an algorithm of nbcshim" '^nbcshim: barrier '
log_has 0 "and without a warning" 'without effect'

expect "the static library links with the MPI first" compile static $MPI_LIBS -l:lib$NBC_NAME.a
program "" NBCSHIM_STATS=1 static
ends_well "and runs" 60
log_has 2 "its collectives complete" '^completed 0$'
if [ ! -f "$scratch/has" ]; then
    log_has 1 "by an algorithm of nbcshim" '^nbcshim: barrier '
fi
finish
