#!/usr/bin/env bash
# Where nbcshim cannot serve a program, one line says so: the library is built for another MPI than
# that of the program; or the program takes its functions from the MPI's library itself.

. "$(dirname "$0")/../lib.sh"
forget_settings

# --- a library that is built for another MPI ------------------------------------------------------

case $MPI_FLAVOR in
mpich) other=openmpi file=libmpi ;;
*) other=mpich file=libmpich ;;
esac

# says NAME COMMAND...: the command ends with status 1 and one line.
says()
{
    local name=$1 status
    shift
    guarded 30 "$scratch/log" "$@"
    status=$?
    expect "$name: the program ends (status $status)" test $status = 1
    log_has 1 "$name: one line names both libraries" \
        "^nbcshim: .*/libnbcshim\.so[.0-9]* is built for .*, but the program uses .*/$file\.so"
    [ "$1" = "mpiexec.$other" ] || # it comments on the status
        log_has 1 "$name: and there is no other" .
}

cat >"$scratch/p.f90" <<'END'
program p
use mpi
integer :: e
call MPI_Init(e)
call MPI_Barrier(MPI_COMM_WORLD, e)
call MPI_Finalize(e)
end program
END

if command -v "mpicc.$other" >/dev/null; then
    expect "a program of another MPI compiles" \
        "mpicc.$other" "$srcdir/test/tools/barrier.c" -o "$scratch/barrier"
    preload="$(sanitizer_runtime) $library"
    preload=$(echo $preload)
    preload=${preload// /:}
    says "preloaded" env LD_PRELOAD="$preload" "$scratch/barrier"
    says "preloaded below its launcher" \
        "mpiexec.$other" -n 1 env LD_PRELOAD="$preload" "$scratch/barrier"
    says "NBCSHIM=off" env NBCSHIM=off LD_PRELOAD="$preload" "$scratch/barrier"
    printf '#!/bin/sh\nexec %s\n' "$scratch/barrier" >"$scratch/script"
    chmod +x "$scratch/script"
    [ -n "$(sanitizer_runtime)" ] ||
        says "nbcrun and a script" tools/nbcrun --library="$library" "$scratch/script"

    # The program's MPI comes after that of the library here, since it is a dependency of a library.
    echo '#include <mpi.h>
int work(void) { return MPI_Init(0, 0) || MPI_Barrier(MPI_COMM_WORLD); }' >"$scratch/work.c"
    echo 'int work(void);
int main(void) { return work(); }' >"$scratch/main.c"
    expect "a library of another MPI compiles" \
        "mpicc.$other" -shared -fPIC "$scratch/work.c" -o "$scratch/libwork.so"
    expect "a program that uses it compiles" $CC "$scratch/main.c" -o "$scratch/main" \
        -L"$scratch" -lwork -Wl,-rpath,"$scratch"
    says "a program whose library uses MPI" env LD_PRELOAD="$preload" "$scratch/main"

    if command -v "mpifort.$other" >/dev/null; then
        expect "a Fortran program of another MPI compiles" \
            env -C "$scratch" "mpifort.$other" p.f90 -o fortran
        says "Fortran" env LD_PRELOAD="$preload" "$scratch/fortran"
    fi

    # It depends on a library of another MPI, but uses this one. Of an MPI with a function that this one may
    # lack, and that nbcshim calls where it is, there is a stand-in.
    expect "a library of an MPI with fault tolerance compiles" $CC -shared -fPIC -x c - \
        -o "$scratch/libmpi_revokes.so" <<<'#include <stdlib.h>
int PMPIX_Comm_is_revoked(void); int PMPIX_Comm_is_revoked(void) { abort(); }'
    expect "a program with libraries that it does not use compiles" $MPICC $newer_calls \
        "$srcdir/test/tools/barrier.c" -o "$scratch/both" -Wl,--no-as-needed \
        -L"$scratch" -lwork -lmpi_revokes -Wl,-rpath,"$scratch"
    preloaded "another MPI that is there, but not used: the program runs" 2 NBCSHIM_STATS=1 "$scratch/both"
    log_has 1 "with nbcshim" '^nbcshim: barrier '
else
    comment "no mpicc.$other: not tested"
fi

# --- a program that takes its functions from the MPI itself ---------------------------------------

mpi=$(ldd "$library" | sed -nE 's/^[[:space:]]*lib(mpi|mpich)\.so[^ ]* => ([^ ]*).*/\2/p' | head -n 1)
expect "a program that loads the MPI compiles" $CC -std=gnu11 "$srcdir/test/tools/apart.c" \
    -o "$scratch/apart" -ldl

# bypasses LINES NAME VARIABLES LIBRARY: on two ranks, so many lines.
bypasses()
{
    preloaded "$2: the program runs" 2 "$3" "$scratch/apart" "$4"
    log_has "$1" "$2: $1 lines" '^nbcshim: NBCSHIM.*, but the program, or a tool behind nbcshim, .* bypassing nbcshim \(dlsym, ctypes\)$'
}
bypasses 1 "NBCSHIM=on" NBCSHIM=on "$mpi"
if [ -z "$(sanitizer_runtime)" ]; then
    printf '#!/bin/sh\nexec %s %s\n' "$scratch/apart" "$mpi" >"$scratch/script"
    mpi_command 2 "" "" "$scratch/script"
    launch=(env NBCSHIM=on tools/nbcrun --library="$library" "${launch[@]}")
    ends_well "nbcrun and a script: the program runs" 60
    log_has 1 "nbcrun and a script: 1 line" '^nbcshim: NBCSHIM=on, but the program, or a tool behind nbcshim, .* bypassing nbcshim'
fi
bypasses 0 "no NBCSHIM" "" "$mpi"
bypasses 1 "NBCSHIM_STATS=1" NBCSHIM_STATS=1 "$mpi"
bypasses 0 "NBCSHIM=off" "NBCSHIM=off NBCSHIM_STATS=1" "$mpi"
cp "$mpi" "$scratch"
bypasses 1 "NBCSHIM=on and another copy of the MPI" NBCSHIM=on "$scratch/${mpi##*/}"

preloaded "a program that calls nbcshim: it runs" 2 NBCSHIM=on "$PWD/test/mpi/orders.preload"
log_has 0 "a program that calls nbcshim: no line" '^nbcshim:'
if [ "$MPIFC" != no ]; then
    expect "a Fortran program compiles" env -C "$scratch" $MPIFC p.f90 -o fortran
    preloaded "a Fortran program: it runs" 2 NBCSHIM=on "$scratch/fortran"
    log_has 0 "a Fortran program: no line" '^nbcshim:'
fi

finish
