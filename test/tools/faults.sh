#!/usr/bin/env bash
# Faults of the system, and what nbcshim and its tools say of them: no threads, no file descriptors, no
# memory from the beginning of MPI_Init on (faults.c); a full disk and a pipe that nobody reads under each
# file that is written; a runtime of a GPU that lacks a function; dlclose (unload.c).

. "$(dirname "$0")/../lib.sh"
forget_settings
unset LD_PRELOAD

faults() # NAME VARIABLES FAULT
{
    preloaded "$1" 2 "$2" "$PWD/test/mpi/faults.preload" $3
}

# --- threads and files --------------------------------------------------------------------------------

faults "no threads: the program ends well" "NBCSHIM_PROGRESS=thread NBCSHIM_TIMEOUT=50" threads
log_has 1 "no progress thread, and why" \
    '^nbcshim: NBCSHIM_PROGRESS=thread ignored: the system cannot create a thread$'
log_has 1 "no hang reports, and why" '^nbcshim: NBCSHIM_TIMEOUT=50 ignored: the system cannot create a thread$'

echo "bcast * * chain" >"$scratch/rules"
files="NBCSHIM_TRACE=$scratch/trace NBCSHIM_STATS=$scratch/stats.json NBCSHIM_TUNING=$scratch/rules"
faults "no file descriptors: the program ends well" "$files" files
for name in TRACE STATS TUNING; do
    log_has 1 "NBCSHIM_$name, and why not" "^nbcshim: NBCSHIM_$name=.* ignored: .*Too many open files$"
done

# --- memory -------------------------------------------------------------------------------------------

# The program's error handler ends the job when a call finds no memory; everything else goes on. Nothing
# hangs or crashes. Pieces that are refused lie the closer the earlier; in the soak each is.
memory() # NAME VARIABLES
{
    local n=1 most=4000 status bad=
    while [ $n -lt $most ]; do
        mpi_command 2 "$(sanitizer_runtime) $library" "$2" "$PWD/test/mpi/faults.preload" memory=$n
        guarded 60 "$scratch/log" "${launch[@]}"
        status=$?
        [ $status = 0 ] || [ -n "$(grep -ciE 'memory|MPI_ERR_|Abort\(' "$scratch/log")" ] || bad="$bad $n"
        if [ $status = 124 ] || grep -qiE 'segmentation|signal 11' "$scratch/log"; then
            bad="$bad $n"
            comment "$(tail -n 30 "$scratch/log")"
        fi
        ! grep -q 'no such piece' "$scratch/log" || break
        n=$((NBC_SOAK_ALL ? n + 1 : 2 * n + 1))
    done
    [ -z "$bad" ] && [ $n -gt 1 ] && [ $n -lt $most ]
    result $? "$1" "pieces$bad"
}
NBC_SOAK_ALL=$([ -z "$NBC_SOAK" ]; echo $?)
if [ "$SANITIZE" = no ]; then
    memory "no memory: the job ends" ""
    memory "no memory, with all that observes: the job ends" "NBCSHIM_CHECK=1 NBCSHIM_STATS=verbose \
        NBCSHIM_TRACE=$scratch/trace NBCSHIM_TIMEOUT=50 NBCSHIM_PROGRESS=thread"
fi

# --- full disks ---------------------------------------------------------------------------------------

ln -s /dev/full "$scratch/full.json"
faults "a full disk: the program ends well" "NBCSHIM_STATS=$scratch/full.json NBCSHIM_TRACE=/dev/full"
log_has 1 "the statistics" '^nbcshim: NBCSHIM_STATS: cannot write .*full.json: No space left on device$'
log_has 1 "the trace" '^nbcshim: NBCSHIM_TRACE: cannot write /dev/full: (No space left on device|Input/output error)$'

# tells NAME STATUS COMMAND...: it ends with that status, and says something on standard error.
tells()
{
    local name=$1 wanted=$2 status
    shift 2
    "$@" </dev/null >/dev/full 2>"$scratch/why"
    status=$?
    [ $status = "$wanted" ] && [ -s "$scratch/why" ]
    result $? "$name, to a full disk: fails and says so" "status $status: $(cat "$scratch/why")"
}

for command in "nbcrun --help" "nbcrun --version" "nbcc --help" "nbcc --nbcc-help" "nbcc --nbcc-version"; do
    tells "$command" 1 tools/$command
done
printf 'nbcprofile 2 1\nrank 0 1 host\nend\n' >"$scratch/record"
records="without=$scratch/record nbcshim=$scratch/record"
tells nbccompare 2 tools/nbccompare program $records
for option in --json --html; do
    tools/nbccompare $option=/dev/full program $records >"$scratch/out" 2>"$scratch/why"
    [ $? = 2 ] && grep -q '^nbcrun: cannot write /dev/full: ' "$scratch/why"
    result $? "nbccompare $option=/dev/full: fails and says so"
done
# Without a launcher, which would write for them.
if [ -z "$(sanitizer_runtime)" ]; then
    for command in "bench/nbcbench --help" "bench/nbcbench -c barrier -n 1" "tools/nbctune --help" \
        "tools/nbctune --version"; do
        tells "$command" 1 $command
    done
fi

# --- closed pipes -------------------------------------------------------------------------------------

faults "nobody reads standard error: the program ends well" "NBCSHIM_STATS=verbose" pipe
mkfifo "$scratch/pipe"
timeout 90 head -c 100 "$scratch/pipe" >"$scratch/begin" &
reader=$!
faults "nobody reads the trace: the program ends well" "NBCSHIM_TRACE=$scratch/pipe"
wait $reader
log_has 1 "and says so" "^nbcshim: NBCSHIM_TRACE: cannot write $scratch/pipe: (Broken pipe|Input/output error)$"

timeout 90 sh -c 'exec <"$1"; sleep 1; cat' reader "$scratch/pipe" >"$scratch/trace.json" &
reader=$!
faults "a slow reader of the trace, and a timer: the program ends well" "NBCSHIM_TRACE=$scratch/pipe" timer
wait $reader
log_has 0 "nothing is said" "cannot write"
! command -v python3 >/dev/null || expect "the trace is whole" python3 -m json.tool "$scratch/trace.json" /dev/null

# --- a GPU's runtime ----------------------------------------------------------------------------------

mpi_command 2 "$(sanitizer_runtime) $library $PWD/test/device/lacking/libcuda.so.1" "" \
    "$PWD/test/mpi/faults.preload"
ends_well "a runtime that lacks a function: buffers on the host may be used" 60
log_has 2 "each process says once which" \
    '^nbcshim: GPU memory is not supported with .*/libcuda.so.1, which lacks cuStreamWaitEvent$'

# --- dlclose ------------------------------------------------------------------------------------------

if [ "$SANITIZE" = no ]; then
    compiled unload -Wl,--no-as-needed -ldl
    for progress in calls thread; do
        mpi_command 2 "" "NBCSHIM=on NBCSHIM_PROGRESS=$progress" "$scratch/unload" "$library"
        ends_well "it unloads nbcshim, NBCSHIM_PROGRESS=$progress" 60
        log_has 2 "the sum" '^sum right$'
    done
fi
finish
