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
    [ $status = 1 ]
    result $? "$name: the program ends (status $status)"
    log_has 1 "$name: one line names both libraries" \
        "^nbcshim: .*/libnbcshim\.so[.0-9]* is built for .*, but the program uses .*/$file\.so"
    log_has 1 "$name: and there is no other" .
}

if command -v "mpicc.$other" >/dev/null; then
    expect "a program of another MPI compiles" \
        "mpicc.$other" "$srcdir/test/tools/barrier.c" -o "$scratch/barrier"
    preload="$(sanitizer_runtime) $library"
    preload=$(echo $preload)
    preload=${preload// /:}
    says "preloaded" env LD_PRELOAD="$preload" "$scratch/barrier"
    says "NBCSHIM=off" env NBCSHIM=off LD_PRELOAD="$preload" "$scratch/barrier"
    printf '#!/bin/sh\nexec %s\n' "$scratch/barrier" >"$scratch/script"
    chmod +x "$scratch/script"
    [ -n "$(sanitizer_runtime)" ] ||
        says "nbcrun and a script" tools/nbcrun --library="$library" "$scratch/script"
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
    mpi_command 2 "$(sanitizer_runtime) $library" "$3" "$scratch/apart" "$4"
    ends_well "$2: the program runs" 60
    log_has "$1" "$2: $1 lines" '^nbcshim: NBCSHIM=on, but the program .* past nbcshim \(dlsym, ctypes\)$'
}
bypasses 1 "NBCSHIM=on" NBCSHIM=on "$mpi"
bypasses 0 "no NBCSHIM" "" "$mpi"
bypasses 0 "NBCSHIM=off" NBCSHIM=off "$mpi"
cp "$mpi" "$scratch"
bypasses 1 "NBCSHIM=on and another copy of the MPI" NBCSHIM=on "$scratch/${mpi##*/}"

mpi_command 2 "$(sanitizer_runtime) $library" NBCSHIM=on "$PWD/test/mpi/extension.preload"
ends_well "a program that calls nbcshim: it runs" 60
log_has 0 "a program that calls nbcshim: no line" '^nbcshim:'

finish
