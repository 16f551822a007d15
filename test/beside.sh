# For quickstart (bash), whose functions it uses: nbcshim, as installed, with what users put beside it: other
# profilers before and behind it, valgrind, sanitizers, gdb. The program is examples/poisson_cg.c. Of the
# profilers, Debian has EZTrace, and Open MPI has one (ompitrace); test/tools/stacking.sh has our own.

# Sets the array launch to a command that starts two ranks, whose environment has VARIABLES, NAME=VALUE words.
beside_launch() # mpi variable...
{
    local variable
    launch=(timeout 300 mpiexec.$1 -n 2)
    [ $1 = mpich ] || launch+=(--oversubscribe)
    for variable in "${@:2}"; do
        if [ $1 = mpich ]; then
            launch+=(-genv "${variable%%=*}" "${variable#*=}")
        else
            launch+=(-x "$variable")
        fi
    done
}

beside_compile() # mpi name flags...
{
    mpicc.$1 -w -g -O1 "${@:3}" -o "$site/$2" examples/poisson_cg.c -lm
}

# beside_run LOG COMMAND...: the program has a good result.
beside_run()
{
    "${@:2}" >"$1" 2>&1 && grep -q '^result  *good' "$1" && return
    cat "$1"
    return 1
}

# Whether nbcshim has carried out the program's collectives.
beside_active() # log
{
    grep -q '^nbcshim: allreduce ' "$1" || { cat "$1" && return 1; }
}

# EZTrace calls the MPI_X that come after it, not PMPI_X. Before nbcshim it sees what it sees without it; behind
# nbcshim it calls the MPI, and nbcshim says that it is bypassed.
beside_eztrace()
{
    local mpi order tool lib nbcshim calls=
    site_unpack libeztrace0 libopen-trace-format2-10 otf2-tools || return 0
    lib=$(echo "$site"/packages/usr/lib/*-linux-gnu)
    for mpi in $mpis; do
        tool=$lib/libeztrace-core.so:$lib/libeztrace-lib.so:$lib/libeztrace-$mpi.so
        nbcshim=$root/_install/$mpi/lib/libnbcshim.so
        beside_compile $mpi traced || return 1
        for order in "$tool" "$tool:$nbcshim" "$nbcshim:$tool"; do
            rm -rf "$site/eztrace"
            beside_launch $mpi LD_LIBRARY_PATH="$lib" LD_PRELOAD="$order" EZTRACE_TRACE=$mpi \
                EZTRACE_TRACE_DIR="$site/eztrace" NBCSHIM_STATS=1
            beside_run "$site/eztrace.log" "${launch[@]}" "$site/traced" 24 || return 1
            case $order in
            "$tool") calls=$(beside_traced) ;;
            "$tool:$nbcshim") beside_active "$site/eztrace.log" && [ "$(beside_traced)" = "$calls" ] || return 1 ;;
            *) grep '^nbcshim: NBCSHIM_STATS is set, but .* bypassing nbcshim' "$site/eztrace.log" || return 1 ;;
            esac
        done
        [[ $calls == *MPI_Iallreduce* ]] || { echo "EZTrace has seen: $calls" && return 1; }
    done
    echo "EZTrace before nbcshim: the same calls as without, both MPIs; behind: a line says that it is bypassed"
}

# The collectives that EZTrace has seen, and how often.
beside_traced()
{
    LD_LIBRARY_PATH=$lib "$site/packages/usr/bin/otf2-print" "$site"/eztrace/*/eztrace_log.otf2 2>/dev/null |
        sed -n 's/^ENTER .*"\(MPI_I[ag][a-z]*\)".*/\1/p' | sort | uniq -c
}

# Open MPI's own profiler, which calls PMPI_X. nbcshim's messages are not among the sends that it sees.
beside_ompitrace()
{
    local tool=libompitrace.so.40 nbcshim=$root/_install/openmpi/lib/libnbcshim.so order calls=
    ldconfig -p | grep -q $tool || { echo "skipped: no $tool" && return; }
    beside_compile openmpi traced || return 1
    for order in "$tool" "$tool:$nbcshim" "$nbcshim:$tool"; do
        beside_launch openmpi LD_PRELOAD="$order" NBCSHIM_STATS=1
        beside_run "$site/ompitrace.log" "${launch[@]}" "$site/traced" 24 || return 1
        if [ "$order" = "$tool" ]; then
            calls=$(beside_sent)
        else
            beside_active "$site/ompitrace.log" && [ "$(beside_sent)" = "$calls" ] ||
                { echo "$order: $(beside_sent) instead of $calls" && return 1; }
        fi
    done
    echo "ompitrace before and behind nbcshim: $calls calls of MPI_Isend, as without"
}

# Two ranks write without regard to each other, so a line may begin within another one.
beside_sent()
{
    grep -o 'MPI_ISEND' "$site/ompitrace.log" | wc -l
}

# memcheck: no error in nbcshim's own code, and no memory of its own that is lost. Others' are counted. The
# function at fault is the first that is neither valgrind's nor the C library's.
beside_valgrind()
{
    local mpi own others
    site_lacks valgrind && return
    for mpi in $mpis; do
        beside_compile $mpi checked && rm -f "$site"/memcheck.* || return 1
        beside_launch $mpi NBCSHIM_STATS=1
        beside_run "$site/valgrind.log" "$root/_install/$mpi/bin/nbcrun" "${launch[@]}" \
            valgrind --fullpath-after= --leak-check=full --log-file="$site/memcheck.%p" "$site/checked" 24 &&
            beside_active "$site/valgrind.log" || return 1
        [ "$(cat "$site"/memcheck.* | grep -c 'ERROR SUMMARY')" = 2 ] || return 1
        own=$(beside_records own) others=$(beside_records others)
        echo "$mpi: of nbcshim: $own; of the MPI and others: $others"
        [ "$own" = "0 errors, 0 losses" ] || { cat "$site"/memcheck.* && return 1; }
    done
    echo "valgrind: no errors and no losses of nbcshim's own on both MPIs"
}

beside_records() # own | others
{
    cat "$site"/memcheck.* | sed 's/^==[0-9]*== \{0,1\}//' | awk -v which="$1" '
        function ends() {
            if (title != "" && at != "" && (at ~ /\/(src|pmpi\/[a-z]+)\/[a-z_]+\.[ch]:/) == (which == "own"))
                title ~ /definitely lost/ ? losses++ : errors++
            title = at = ""
        }
        /^$/ { ends() }
        /^[A-Z0-9].*/ && title == "" { title = $0 }
        /^ +(at|by) 0x/ && at == "" && !/vgpreload_memcheck|\/(string|malloc|libio|debug|sysdeps)\// { at = $0 }
        END { ends(); printf "%d errors, %d losses\n", errors, losses }'
}

# A program with sanitizers: nbcshim comes before their runtime, which has to accept that. A program that is
# wrong is found out all the same.
beside_sanitizers()
{
    local mpi
    printf '#include <mpi.h>\n#include <stdlib.h>\nint main(int argc, char **argv)\n{\nMPI_Request r;\n%s' \
        'int *a = malloc(4), *b = malloc(2);' >"$site/short.c"
    printf '%s\n' 'MPI_Init(&argc, &argv); *a = 1; MPI_Iallreduce(a, b, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r);' \
        'MPI_Wait(&r, MPI_STATUS_IGNORE); a[0] = b[0]; MPI_Finalize(); return a[0] == 0;}' >>"$site/short.c"
    export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0
    for mpi in $mpis; do
        beside_launch $mpi NBCSHIM_STATS=1
        beside_compile $mpi sanitized -fsanitize=address,undefined &&
            beside_run "$site/sanitized.log" "$root/_install/$mpi/bin/nbcrun" "${launch[@]}" "$site/sanitized" 24 &&
            beside_active "$site/sanitized.log" || return 1
        ! grep -E 'runtime error|ERROR: AddressSanitizer' "$site/sanitized.log" || return 1
        mpicc.$mpi -g -fsanitize=address -o "$site/short" "$site/short.c" || return 1
        "$root/_install/$mpi/bin/nbcrun" "${launch[@]}" "$site/short" >"$site/short.log" 2>&1
        grep 'heap-buffer-overflow' "$site/short.log" || { cat "$site/short.log" && return 1; }
    done
    unset ASAN_OPTIONS
    echo "address and undefined: a right program passes, a wrong one is found out, on both MPIs"
}

# gdb: a breakpoint in a function that nbcshim interposes, and one within it; stacks from there to main.
beside_gdb()
{
    local mpi name
    site_lacks gdb && return
    for mpi in $mpis; do
        beside_compile $mpi debugged || return 1
        beside_launch $mpi
        "$root/_install/$mpi/bin/nbcrun" "${launch[@]/2/1}" gdb --batch -ex 'set breakpoint pending on' \
            -ex 'break MPI_Iallreduce' -ex 'break nbc_transport_start' -ex run -ex bt -ex continue -ex bt \
            --args "$site/debugged" 24 </dev/null >"$site/gdb.log" 2>&1
        for name in '^#0 .*MPI_Iallreduce (sendbuf=.* at .*pmpi/op/collectives.def:' \
            '^#0 .*nbc_transport_start (.* at .*/mpi_transport.c:' '^#[0-9]* .*nbc_launch_checked (.* at .*/launch.c:' \
            '^#[0-9]* .*main (.* at .*poisson_cg.c:'; do
            grep "$name" "$site/gdb.log" || { cat "$site/gdb.log" && return 1; }
        done
    done
    echo "gdb: breakpoints in MPI_Iallreduce and within nbcshim, stacks with names up to main, on both MPIs"
}

soak_beside()
{
    local part
    for part in eztrace ompitrace valgrind sanitizers gdb; do
        step beside-$part check_command beside-$part beside_$part
    done
}
