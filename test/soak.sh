# For quickstart (bash), whose functions it uses: the parts of a soak. Each requires only build_all. It consists of steps, whose
# results are kept, so that a soak that was interrupted goes on with the step that was interrupted.

soak_parts="algorithms checks sanitized threads fuzz mutate newest site programs cures distributions"
soak_results=_build/soak.results

# The sources, and how long the tests are: results of other ones do not count.
soak_key()
{
    local commit=archive change=
    if git rev-parse --git-dir >/dev/null 2>&1; then
        commit=$(git rev-parse --short HEAD)
        change=$(git diff HEAD | cksum | cut -d ' ' -f 1)
        [ "$change" != 4294967295 ] || change= # of nothing
    fi
    echo "$commit${change:++$change} ${NBC_SOAK:-} ${FUZZ_SECONDS:-}"
}

# step NAME COMMAND...: runs a command that counts in passed and failed.
step()
{
    local name=$1 before_passed=$passed before_failed=$failed start=$SECONDS date good bad
    shift
    IFS='|' read -r date good bad < <(awk -F '|' -v key="$(soak_key)" -v name="$name" \
        '$1 == key && $2 == name { print $3 "|" $5 "|" $6 }' "$soak_results" 2>/dev/null | tail -n 1)
    if [ -n "$date" ]; then
        echo "$name: $good passed, $bad failed on $date"
        passed=$((passed + good))
        failed=$((failed + bad))
        return
    fi
    "$@"
    printf '%s|%s|%s|%s|%s|%s\n' "$(soak_key)" "$name" "$(date +%F)" $((SECONDS - start)) \
        $((passed - before_passed)) $((failed - before_failed)) >>"$soak_results"
}

# The results of the present sources, as a table.
show_soak()
{
    awk -F '|' -v key="$(soak_key)" '
        $1 == key {
            printf "%-40s %s  %6d s  %6d passed  %d failed\n", $2, $3, $4, $5, $6
            seconds += $4
            passed += $5
            failed += $6
        }
        END { printf "%-40s %10s  %6d s  %6d passed  %d failed\n", "all", "", seconds, passed, failed }
    ' "$soak_results"
}

# The algorithms of a collective, each a case, as many at a time as there are processors.
check_algorithms() # COLLECTIVE
{
    local test=_build/mpich/test/unit/test_algs log=_build/algorithms-$1.log names good bad
    mapfile -t names < <("$test" --list "$1")
    printf '%s\n' "${names[@]}" | xargs -I '{}' -P "$(nproc)" "$test" '{}' >"$log" 2>&1
    good=$(grep -c '^ok .*, [1-9]' "$log") # not of no cases
    bad=$((${#names[@]} - good))
    echo "$1: $good passed, $bad failed"
    [ $bad = 0 ] || grep -v '^ok .*, [1-9]' "$log" | head -n 200
    passed=$((passed + good))
    failed=$((failed + bad))
}

soak_algorithms()
{
    local coll
    logged algorithms-build make -C _build/mpich -j "$(nproc)" test/unit/test_algs
    for coll in $(_build/mpich/test/unit/test_algs --list | sed 's/:.*//' | uniq); do
        step "algorithms-$coll" check_algorithms "$coll"
    done
}

# Runs TESTS as one step, then each MPI program as a step of its own.
check_in_steps() # NAME TREE TESTS [VARIABLE=VALUE...]
{
    local name=$1 tree=$2 program
    shift
    step "$name" check "$@"
    for program in $(env -C "_build/$tree" "$root/test/mpi/run.sh" --programs |
        sed 's|.*/||; s|\..*||' | sort -u); do
        NBC_TESTS="^$program[ ,]" step "$name-$program" check "$tree" test/mpi/run.sh \
            check_PROGRAMS= check_LTLIBRARIES=test/mpi/yield.la
    done
}

# Every algorithm is in soak_algorithms. Unit tests are run once.
soak_checks()
{
    check_in_steps checks-mpich mpich '$(filter-out test/unit/test_algs,$(unit_tests)) $(shell_tests)'
    check_in_steps checks-openmpi openmpi "$tests_again" "${built_again[@]}" \
        check_PROGRAMS=test/tools/instructions
    step checks-mpi22 check_mpi22
    step checks-smpi on_smpi check
}

# The runs of every algorithm on 4 and 8 ranks are left to the plain trees: with sanitizers they would
# spend most of their time on the buffers of the test.
soak_sanitized()
{
    local mpi
    for mpi in $mpis; do
        build $mpi-sanitized $mpi --enable-sanitize=address,undefined
    done
    export NBC_SKIP='^collectives, [48] ranks, preload, algorithms'
    check_in_steps sanitized-mpich mpich-sanitized '$(unit_tests) $(shell_tests)'
    check_in_steps sanitized-openmpi openmpi-sanitized "$tests_again" "${built_again[@]}" \
        check_PROGRAMS=test/tools/instructions
    unset NBC_SKIP
}

soak_threads()
{
    build mpich-thread mpich --enable-sanitize=thread
    NBC_TESTS='^(requests_threads|progress_thread|callbacks_threads)' \
        step threads check mpich-thread test/mpi/run.sh
    step threads-fuzz fuzz mpich-thread 60 NBCSHIM_PROGRESS=thread
}

soak_fuzz()
{
    local mpi seconds=${FUZZ_SECONDS:-600}
    for mpi in $mpis; do
        step fuzz-$mpi fuzz $mpi $((seconds / 2))
        step fuzz-$mpi-few-tags fuzz $mpi $((seconds / 4)) NBCSHIM_TEST=tag_ub=60,nodes=2
        step fuzz-$mpi-thread fuzz $mpi $((seconds / 4)) NBCSHIM_PROGRESS=thread
        NBC_UNDER="valgrind -q --error-exitcode=9 --suppressions=$root/test/valgrind.supp" \
            step fuzz-$mpi-valgrind fuzz $mpi $((seconds / 4)) --ranks=2 --limit=120 --lines=40
    done
    build_mpi22
    step fuzz-mpi22 fuzz mpi22 $((seconds / 4))
    step fuzz-text check_command text env -C _build/mpich NBC_TEXT_SECONDS=$((seconds * 6)) \
        "$root/test/text/run.sh"
}

soak_programs()
{
    step programs run_programs
}

# Programs after reports of faults, natively and in four ways.
soak_cures()
{
    local mpi
    for mpi in $mpis; do
        step cures-$mpi check_command "cures-$mpi" env -C "_build/$mpi" "$root/test/cures/run.sh" --all
    done
}

# MUTATE=all: all faults, in a hundred steps. The tests have their normal lengths.
soak_mutate()
{
    local part options=${MUTATE---part=1/20}
    [ "$options" != all ] || options=$(printf -- '--part=%d/100 ' {1..100})
    for part in ${options:-""}; do
        step "mutate${part:+ $part}" check_command mutate env -u NBC_SOAK \
            make -C _build/mpich mutate MUTATE="$part"
    done
}

check_distribution() # NAME
{
    local log=_build/distribution-$1.log good bad
    "$root/test/distribution" "$1" >"$log" 2>&1
    read -r good bad < <(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed$/\1 \2/p' "$log" | tail -n 1)
    echo "$1: ${good:-0} passed, ${bad:-1} failed"
    grep '^FAIL' "$log"
    passed=$((passed + ${good:-0}))
    failed=$((failed + ${bad:-1}))
}

# What people have today, beside Debian 12.
soak_distributions()
{
    local name
    for name in trixie noble resolute; do
        step "distribution-$name" check_distribution $name
    done
}

run_soak() # part...
{
    local part
    export NBC_SOAK=${NBC_SOAK:-1}
    for part in ${*:-$soak_parts}; do
        soak_$part
    done
    show_soak
    closing_line
}
