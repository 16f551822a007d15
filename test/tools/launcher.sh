#!/usr/bin/env bash
# The launcher started several processes, and each is alone in MPI_COMM_WORLD: one of them says so. Nobody
# does in a serial step, nor where another launcher has started one process. The variables are those that
# Slurm 22.05, Open MPI and MPICH set.

. "$(dirname "$0")/../lib.sh"
forget_settings
allow_late_sanitizer
for name in ${!SLURM_*} ${!PMI_*} ${!OMPI_COMM_*} ${!FLUX_*} ${!JSM_*}; do
    unset "$name"
done
app=$scratch/app
$MPICC -I"$srcdir/include" -o "$app" "$srcdir/test/tools/app.c" -L"$PWD/.libs" -l"${NBC_NAME#lib}" \
    -Wl,-rpath,"$PWD/.libs" -Wl,--enable-new-dtags || exit 1
line='^nbcshim: .*=4, but each of these processes is alone in MPI_COMM_WORLD: '

# alone NAME LINES VARIABLE...: the program without a launcher writes so many of these lines.
alone()
{
    local name=$1 lines=$2 found
    shift 2
    guarded 60 "$scratch/log" env ${runtime:+"LD_PRELOAD=$runtime"} "$@" "$app"
    found=$(grep -cE "$line" "$scratch/log")
    [ "$found" = "$lines" ]
    result $? "$name" "$(cat "$scratch/log")"
}
runtime=$(sanitizer_runtime)

alone "srun -n 4, but the MPI does not know Slurm: a line" 1 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0 SLURM_NTASKS=4
expect "it says what to try" grep -q 'srun: try another --mpi=' "$scratch/log"
alone "another rank says nothing" 0 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=1 SLURM_NTASKS=4
alone "in a batch script there is no step" 0 SLURM_NTASKS=4 SLURM_PROCID=0 SLURM_JOBID=5
alone "srun -n 1 in an allocation of 4" 0 SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0 SLURM_JOBID=5
alone "in a shell of srun --pty" 0 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0 SLURM_PTY_PORT=45371
alone "no launcher" 0 NBCSHIM=on
alone "with NBCSHIM=off nothing is said" 0 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0 NBCSHIM=off

# A library that is called as the PMIx library calls itself, and that calls that one, if the MPI has it.
if [ "$MPI_FLAVOR" = mpich ]; then
    cat >"$scratch/pmix.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
int PMIx_Init(void *process, void *info, unsigned long n)
{
    int (*next)(void *, void *, unsigned long) =
        (int (*)(void *, void *, unsigned long))dlsym(RTLD_NEXT, "PMIx_Init");
    return next ? next(process, info, n) : -1;
}
END
    expect "a library with a function of PMIx compiles" $CC -shared -fPIC -o "$scratch/pmix.so" "$scratch/pmix.c" -ldl
    runtime="${runtime:+$runtime:}$scratch/pmix.so"
    alone "a launcher that does not speak PMIx, which the MPI does: a line" 1 JSM_NAMESPACE_SIZE=4 JSM_NAMESPACE_RANK=0
    expect "it says which one does" grep -q 'this one uses PMIx: try mpiexec of Open MPI' "$scratch/log"
    runtime=$(sanitizer_runtime)
fi

# Launched: the variables of the step in which the launcher's daemons run.
for ranks in 1 2; do
    mpi_command $ranks "$runtime" "SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0" "$app"
    guarded 60 "$scratch/log" "${launch[@]}"
    status=$?
    [ $status = 0 ] && ! grep -q 'is alone in' "$scratch/log"
    result $? "mpiexec -n $ranks in a step of 4 daemons" "status $status: $(cat "$scratch/log")"
done

finish
