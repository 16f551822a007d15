#!/usr/bin/env bash
# The examples that compare themselves with their blocking form: ordinary MPI programs, run on the
# MPI alone and under nbcshim, right in both, and with the times they took. How large a gain is
# depends on the machine; that there are two times and that they make that gain does not.

. "$(dirname "$0")/../lib.sh"

# run NAME PRELOAD RANKS ARGUMENT...
run()
{
    local name=$1 preload=$2 ranks=$3 with="alone"
    shift 3
    [ -z "$preload" ] || with="under nbcshim"
    mpi_command "$ranks" "$preload" "" "$scratch/$name" "$@"
    guarded 60 "$scratch/log" "${launch[@]}" && ! grep -q WRONG "$scratch/log" &&
        awk '/^blocking [0-9.]+ us, nonblocking [0-9.]+ us, gain -?[0-9]+ %$/ {
                 gain = 100 * (1 - $5 / $2)
                 found = $2 > 0 && $5 > 0 && gain - $8 < 2 && $8 - gain < 2
             }
             END { exit !found }' "$scratch/log"
    result $? "$name, $ranks ranks, $with" "$(cat "$scratch/log")"
}

# (gcc takes MPICH's MPI_STATUSES_IGNORE for an array of no elements.)
for name in nbx double_buffer fft2d; do
    expect "$name compiles without warnings" $CC -std=gnu11 -O2 -Wall -Wextra -Wshadow -Werror \
        -Wno-unknown-warning-option -Wno-stringop-overflow \
        $MPI_CPPFLAGS $newer_calls "$srcdir/examples/$name.c" -o "$scratch/$name" $MPI_LIBS -lm
done
for ranks in 1 2 4; do
    run nbx "$(sanitizer_runtime) $library" $ranks 3 50
    run double_buffer "$(sanitizer_runtime) $library" $ranks 20 20000
    run fft2d "$(sanitizer_runtime) $library" $ranks 128
done
run nbx "$(sanitizer_runtime) $library" 3 9 50
run nbx "$(sanitizer_runtime) $library" 16 3 20
if mpi_has Iallreduce; then
    run nbx "" 4 3 50
    run double_buffer "" 4 20 20000
    run fft2d "" 4 128
fi

# Buffers on a GPU, here the look-alike's, on any MPI; the statistics tell what was copied.
if mpi_has Iallreduce; then
    expect "device compiles without warnings" $CC -std=gnu11 -O2 -Wall -Wextra -Wshadow -Werror \
        -Wno-unknown-warning-option -Wno-stringop-overflow -I"$srcdir/test/device" $MPI_CPPFLAGS \
        "$srcdir/examples/device.c" -o "$scratch/device" "$PWD/test/device/libcuda.so.1" \
        "-Wl,-rpath,$PWD/test/device" $MPI_LIBS
    preloaded "device: the program ends well" 2 NBCSHIM_STATS=1 "$scratch/device" 3 300000
    log_has 1 "device: it is right" '^3 buckets of 300000 floats, 2 ranks: right$'
    log_has 1 "device: statistics of copies" \
        '^nbcshim: GPU memory: 3 starts staged, 0 direct; 3600000 bytes copied from it, 3600000 to it; copies under way for 0\.[0-9]+ s$'
    preloaded "an MPI that does not take its buffers: the program ends well" 2 NBCSHIM_DEVICE=direct \
        "$scratch/device" 3 30000
    log_has 1 "NBCSHIM_DEVICE=direct is refused in a line" '^nbcshim: NBCSHIM_DEVICE=direct: this MPI does not say'
    # The look-alike of an MPI that takes them.
    mpi_command 2 "$(sanitizer_runtime) $library $PWD/test/device/aware.so" \
        "NBCSHIM_STATS=1 NBCSHIM_BLOCKING=own NBCSHIM_DEVICE=direct NBC_DEVICE=device" test/mpi/fuzz.preload --programs=20
    ends_well "an MPI that takes buffers of GPUs: a program ends well" 60
    log_has 0 "NBCSHIM_DEVICE=direct is accepted" '^nbcshim: NBCSHIM_DEVICE=direct'
    log_has 1 "statistics of the buffers that it gets" '^nbcshim: GPU memory: [0-9]+ starts staged, [1-9][0-9]* direct; '
fi

# What they say of a wrong argument.
mpi_command 1 "" "" "$scratch/fft2d" 100
! guarded 60 "$scratch/log" "${launch[@]}"
result $? "fft2d refuses what is no power of two"

finish
