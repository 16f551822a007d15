#!/usr/bin/env bash
# Fortran programs (collectives.F90) with mpif.h, mpi and mpi_f08: preloaded with what the MPI's
# binding has, linked with the modules for what it lacks, and with all entry points ours.

. "$(dirname "$0")/../lib.sh"

if [ "$MPIFC" = no ]; then
    echo "1..0 # SKIP no Fortran compiler for this MPI"
    exit 0
fi

bindings=(- mpif.h mpi mpi_f08)
last=1
[ ! -f fortran/nbcshim.mod ] || last=2
[ ! -f fortran/nbcshim_f08.mod ] || last=3

# Programs that use only what the MPI's own binding has.
has=()
case $NBC_FORTRAN_LACKS in *ibarrier*) has+=(-DNO_NONBLOCKING) ;; esac
case $NBC_FORTRAN_LACKS in *barrier_init*) has+=(-DNO_PERSISTENT) ;; esac

# Buffers of several types are passed to one external procedure: gfortran minds.
flags=(-O1)
! echo 'end' >"$scratch/try.f90" ||
    ! $MPIFC -fallow-argument-mismatch -c "$scratch/try.f90" -o "$scratch/try.o" 2>/dev/null ||
    flags+=(-fallow-argument-mismatch)

sources=collectives
compile() # program binding flags...
{
    local program=$1 binding=$2
    shift 2
    (mkdir -p "$scratch/$program.mod" && cd "$scratch/$program.mod" &&
        $MPIFC "${flags[@]}" -DBINDING="$binding" -I"$build/fortran" \
            "$source/test/fortran/$sources.F90" -o "$scratch/$program" "$@")
}

# The statistics tell that it was nbcshim that did it.
runs() # name program ranks preload variables
{
    mpi_command "$3" "$4" "NBCSHIM_STATS=1 $5" "$scratch/$2"
    guarded 60 "$scratch/log" "${launch[@]}" && grep -q '^all right' "$scratch/log" &&
        grep -q '^nbcshim: alltoallw ' "$scratch/log"
    result $? "$1, $3 ranks" "$(head -c 5000 "$scratch/log")"
}

build=$PWD
source=$(cd "$srcdir" && pwd)

# Our entry points for everything, in front of the MPI's.
everything()
{
    $CC -std=gnu11 -shared -fPIC -DNBC_FORTRAN_ALL -DNBC_FORTRAN_APART -I. -I"$srcdir/include" \
        -I"$srcdir/pmpi" $MPI_CPPFLAGS "$srcdir/pmpi/api/fortran.c" -o "$scratch/all.so" \
        -L.libs -lnbcshim
}
expect "all entry points compile" everything

for ((b = 1; b <= last; b++)); do
    name=${bindings[b]}
    expect "$name compiles" compile "plain$b" $b "${has[@]}"
    for ranks in 1 3; do
        runs "$name, preloaded" "plain$b" $ranks "$(sanitizer_runtime) $library" NBCSHIM=on
    done
    expect "$name compiles with the module" compile "module$b" $b \
        $([ $b = 1 ] || echo -DMODULE) -L"$build/.libs" \
        -Wl,--no-as-needed -lnbcshim -Wl,-rpath,"$build/.libs"
    for ranks in 1 3 4; do
        runs "$name, linked" "module$b" $ranks "$(sanitizer_runtime)" ""
    done
    # The procedures of mpi_f08 have names of the MPI's own.
    [ $b = 3 ] || runs "$name, all entry points" "module$b" 3 \
        "$(sanitizer_runtime) $scratch/all.so $library" ""
done

# The names of nbcshim.h that are no collectives.
sources=names
right() # program
{
    mpi_command 2 "$(sanitizer_runtime)" "" "$scratch/$1"
    guarded 60 "$scratch/log" "${launch[@]}" && [ "$(grep -c '^all right' "$scratch/log")" = 2 ] ||
        { cat "$scratch/log" && false; }
}
for ((b = 1; b <= last; b++)); do
    expect "${bindings[b]}: a program that uses nbcshim's names compiles" compile "names$b" $b \
        -L"$build/.libs" -lnbcshim -Wl,-rpath,"$build/.libs"
    expect "${bindings[b]}: nbcshim's names, 2 ranks" right "names$b"
done

# Where nbcshim is not active, the MPI's own binding makes the operation, which keeps what it converts.
passed_on() # binding
{
    mpi_command 2 "$(sanitizer_runtime) $library" "NBCSHIM=off" "$scratch/native$1"
    guarded 60 "$scratch/log" "${launch[@]}" && [ "$(grep -c '^all right' "$scratch/log")" = 2 ] ||
        { cat "$scratch/log" && false; }
}
case $NBC_FORTRAN_LACKS in *ialltoallw*) last_native=0 ;; *) last_native=$last ;; esac
sources=native
for ((b = 1; b <= last_native; b++)); do
    expect "${bindings[b]}: a program with an MPI_Ialltoallw compiles" compile "native$b" $b
    expect "${bindings[b]}: the MPI's MPI_Ialltoallw, 2 ranks" passed_on $b
done

# Large counts, where the MPI's mpi_f08 has them: MPICH from 4.0 on, Open MPI from 6.0 on.
sources=large
if compile large 3 2>"$scratch/large.log"; then
    runs "mpi_f08: large counts" large 3 "$(sanitizer_runtime) $library" NBCSHIM=on
fi

# A tool sees Fortran's calls: MPICH's binding calls MPI_X, and so do our entry points.
tracer()
{
    $CC -std=gnu11 -O2 -shared -fPIC -I"$srcdir/include" $MPI_CPPFLAGS \
        "$srcdir/test/tools/tracer.c" -o "$scratch/tracer.so"
}

traces() # name program preload
{
    local wanted='Allreduce_init 2( |$)' other='Iallreduce 5( |$)'
    rm -f "$scratch/seen"
    mpi_command 3 "$(sanitizer_runtime) $3" "TRACER_LOG=$scratch/seen" "$scratch/$2"
    guarded 60 "$scratch/log" "${launch[@]}" && [ "$(grep -cE "$wanted" "$scratch/seen")" = 3 ] &&
        [ "$(grep -cE "$other" "$scratch/seen")" = 3 ]
    result $? "$1" "$(cat "$scratch/log" "$scratch/seen")"
}
expect "a tool compiles" tracer
traces "a tool before nbcshim sees Fortran's calls" module1 "$scratch/tracer.so $library"
traces "a tool behind nbcshim sees Fortran's calls" module1 "$library $scratch/tracer.so"

example()
{
    (mkdir -p "$scratch/example.mod" && cd "$scratch/example.mod" &&
        $MPIFC -I"$build/fortran" "$source/examples/persistent.f90" -o "$scratch/example" \
            -L"$build/.libs" -Wl,--no-as-needed -lnbcshim -Wl,-rpath,"$build/.libs")
}
mean()
{
    mpi_command 3 "$(sanitizer_runtime)" "" "$scratch/example"
    guarded 60 "$scratch/log" "${launch[@]}" && grep 'mean   2.000   3.000   4.000   5.000' "$scratch/log"
}
if [ $last = 3 ]; then
    expect "examples/persistent.f90 compiles" example
    expect "it gives the mean" mean
fi

# With our interfaces for everything, where the MPI has its own for most.
all_f08()
{
    mkdir -p "$scratch/f08" &&
        awk -v module=nbcshim_f08 -v f08=1 -v lacks=all -f "$srcdir/fortran/modules.awk" \
            "$srcdir/include/nbcshim.h" "$srcdir/pmpi/op/collectives.def" \
            >"$scratch/f08/nbcshim_f08.f90" &&
        (cd "$scratch/f08" && $MPIFC -c nbcshim_f08.f90)
}
if [ $last = 3 ]; then
    expect "the interfaces of all compile for mpi_f08" all_f08
fi

# MPICH's module of PMPI_ names.
cat >"$scratch/pmpi.f90" <<'END'
program pmpi
  use pmpi_f08
  type(MPI_Request) :: request
  call PMPI_Init()
  call PMPI_Ibarrier(MPI_COMM_WORLD, request)
  call PMPI_Wait(request, MPI_STATUS_IGNORE)
  call PMPI_Finalize()
end program
END
found()
{
    mpi_command 2 "$(sanitizer_runtime) $library" "NBCSHIM_STATS=1" "$scratch/pmpi"
    guarded 60 "$scratch/log" "${launch[@]}" && grep '^nbcshim: barrier' "$scratch/log"
}
if $MPIFC "$scratch/pmpi.f90" -o "$scratch/pmpi" 2>/dev/null; then
    expect "a program of pmpi_f08 alone is found to use nonblocking collectives" found
fi
finish
