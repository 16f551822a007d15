#!/usr/bin/env bash
# nbcshim on several hosts (see hosts): results, node maps, nbcrun, a rank that is killed. In a soak
# also with delays, lost frames and links that fail for a while.

. "$(dirname "$0")/../lib.sh"
forget_settings
allow_late_sanitizer
hosts=$(cd "$(dirname "$0")" && pwd)

# All cases run within one set of hosts: this script starts itself there.
if [ -z "$HOSTS" ]; then
    if ! why=$("$hosts/hosts" --possible); then
        echo "1..0 # SKIP $why"
        exit
    fi
    rm -rf "$scratch"
    exec "$hosts/hosts" 4 bash "$0"
fi

# --- on hosts -------------------------------------------------------------------------------------

# The ranks of each layout, by host.
declare -A layouts=([2x2]="h1:2,h2:2" [4x1]="h1:1,h2:1,h3:1,h4:1" [2+1+3]="h1:2,h2:1,h3:3" [4]="h1:4")

# What makes the launcher use these hosts, and the MPI the network between them.
host_options() # layout
{
    case $MPI_LAUNCHER in
    openmpi)
        echo --host "${layouts[$1]}" --mca plm_rsh_agent "$hosts/on" --mca pml ob1 \
            --mca btl tcp,self,vader --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0
        ;;
    *)
        echo -launcher ssh -launcher-exec "$hosts/on" -hosts "${layouts[$1]}" \
            -genv UCX_TLS tcp,self -genv UCX_NET_DEVICES eth0
        ;;
    esac
}

# on_hosts LAYOUT PRELOAD VARIABLES COMMAND...: as mpi_command, from the first host.
on_hosts()
{
    local layout=$1 preload=$2 variables=$3 ranks=0 part
    shift 3
    for part in ${layouts[$layout]//,/ }; do
        ranks=$((ranks + ${part#*:}))
    done
    [ "$MPI_FLAVOR" = openmpi ] || preload="$preload $HOSTS/finalize.so"
    mpi_command $ranks "$preload" "$variables${NBC_NAP:+ NBC_NAP=$NBC_NAP}" "$@"
    set -- "${under[@]}" "${launch[0]}" $(host_options "$layout") "${launch[@]:1}"
    launch=("$hosts/on" h1 "cd $(printf %q "$PWD") && exec $(printf ' %q' "$@")")
}
under=() # a command that runs the launcher

program()
{
    echo "$PWD/test/mpi/$1.preload"
}

ours="$(sanitizer_runtime) $library"

# --- results, and the node map --------------------------------------------------------------------

# Algorithms that apply only where ranks share hosts; where none do, the rules choose others.
colls='BARRIER BCAST REDUCE ALLREDUCE ALLGATHER ALLTOALL'
pieces='GATHER GATHERV SCATTER SCATTERV ALLGATHER ALLGATHERV ALLTOALL ALLTOALLV ALLTOALLW
    REDUCE_SCATTER_BLOCK REDUCE_SCATTER'
forced=NBCSHIM_STATS=1
for coll in $colls; do
    forced="$forced NBCSHIM_ALGORITHM_$coll=hierarchical"
done

results() # layout variables collectives network
{
    on_hosts "$1" "$ours" "$2" "$(program collectives)" ${3,,}
    ends_well "$1 ranks: right results${4:+, $4}" 60
}

hierarchical() # layout number-of-collectives collectives variables
{
    results "$1" "$forced $4" "$3"
    log_has "$2" "$1 ranks: $2 collectives know who shares a host" \
        "^nbcshim: [a-z]+ +hierarchical "
}

# The rules for hosts that have only sockets. Adapters of this machine are seen on its hosts.
few_rounds() # layout number-of-collectives
{
    [ -z "$(ls -A /sys/class/{infiniband,cxi,gni,bxi} 2>/dev/null)" ] || return
    log_has "$2" "$1 ranks: $2 collectives have a rule for sockets" "^nbcshim: barrier +one_round "
}

hierarchical 4x1 0 "" NBC_FEW=1
few_rounds 4x1 1
echo "eager 100" >"$scratch/short"
results 4x1 "NBCSHIM_TUNING=$scratch/short NBC_FEW=1" "$pieces" "blocks in pieces"
results 4 NBCSHIM_STATS=1 BARRIER
few_rounds 4 0
# Who shares a host does not depend on sizes: few of them.
hierarchical 2x2 6 "$colls" NBC_FEW=1
hierarchical 2+1+3 6 "$colls" NBC_FEW=1

on_hosts 4x1 "$ours" NBCSHIM_PROGRESS=thread "$(program progress_thread)"
ends_well "4x1 ranks: the progress thread sends what starts leave to it" 60

on_hosts 4x1 "" "" tools/nbctune --loggp
ends_well "nbctune --loggp" 60
[ -n "$(ls -A /sys/class/{infiniband,cxi,gni,bxi} 2>/dev/null)" ] ||
    log_has 1 "it tells that there are only sockets" "^sockets = 1$"

# --- nbcrun ---------------------------------------------------------------------------------------

# Were the variable not the same on all hosts, they would wait for different messages.
under=(env NBCSHIM_STATS=1 NBCSHIM_ALGORITHM_BARRIER=dissemination tools/nbcrun "--library=$library")
on_hosts 2x2 "" "" "$(program collectives)" barrier bcast
under=()
ends_well "nbcrun" 60
log_has 1 "nbcrun: the variables reach all hosts" "^nbcshim: barrier +dissemination "

# --- a host without nbcshim -----------------------------------------------------------------------

cat >"$scratch/lacking" <<'END'
#!/bin/sh
[ "$(hostname)" != h2 ] || unset LD_PRELOAD
exec "$@"
END
chmod +x "$scratch/lacking"
expect "barrier.c compiles" $MPICC $newer_calls -o "$scratch/barrier" "$srcdir/test/tools/barrier.c"
on_hosts 2x2 "$ours" NBCSHIM_INIT_TIMEOUT=2 "$scratch/lacking" "$scratch/barrier"
ends_badly "a host without nbcshim: the job ends" 30
log_has 1 "one line names its ranks, and the other host" \
    "^nbcshim: no answer from ranks 2-3 of 4 at MPI_Init for [2-9] s; nbcshim runs on ranks 0-1 \(h1\)\. The job ends"

# --- faults ---------------------------------------------------------------------------------------

expect "lost.c compiles" $MPICC $newer_calls -o "$scratch/lost" "$hosts/lost.c"
on_hosts 4x1 "$ours" "" "$scratch/lost"
ends_badly "a rank is killed: the job ends" 30

# --- a slow and faulty network --------------------------------------------------------------------

# The link of a host fails once a second for a tenth of it, until the calling shell ends it. Not longer:
# TCP doubles the time after which it sends again with each attempt that falls into a failure. If the
# link fails for half of the time, for 0.2 or 0.5 seconds at once, a job that takes 6 seconds here takes
# 15 in one run and more than a minute in the next, and Open MPI's launcher may give up at its first
# connection.
flap()
{
    while sleep 1; do
        "$hosts/hosts" --set down=2
        sleep 0.1
        "$hosts/hosts" --set up=2
    done
}

network() # setting...
{
    local setting
    for setting; do
        "$hosts/hosts" --set "$setting"
        result $? "network: $setting"
    done
}

if [ -n "$NBC_SOAK" ]; then
    network delay=500
    results 4x1 "" "" "delay"
    results 2x2 "" "" "delay"
    results 2+1+3 "" "" "delay"
    network loss=0.5
    results 2x2 "" "" "delay and loss"
    network loss=0 delay=0
    flap &
    flapping=$!
    results 2x2 "" "$colls" "a link that fails"
    kill $flapping
    wait $flapping 2>/dev/null
    network up=2 stall=3
    on_hosts 4x1 "$ours" "" "$(program collectives)" barrier
    (sleep 5 && "$hosts/hosts" --set go=3) &
    ends_well "a host that is not heard for five seconds: right results" 60
    wait $!
fi

finish
