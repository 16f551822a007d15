# For quickstart (bash), whose functions it uses: the tests of each tree, and how their results are counted.

passed=0
failed=0

# check TREE [TESTS [VARIABLE=VALUE...]]: runs make check in the tree, and counts the cases in the results
# that automake writes, one line per case. A skipped case counts as failed, because quickstart has
# installed everything that the tests need; except what the machine does not allow, which is shown. Some
# tests mostly wait: one more runs than there are processors.
check()
{
    local tree=$1 tests=${2:-} log=_build/$1-check.log start=$SECONDS status good bad excused
    shift $(($# < 2 ? $# : 2))
    mkdir -p "_build/$tree/test"
    find "_build/$tree/test" -name '*.trs' -delete
    build_tests "$tree" "$tests" "$@" &&
        make -C "_build/$tree" -j $(($(nproc) + 1)) -k "$@" check ${tests:+"TESTS=$tests"} >>"$log" 2>&1
    status=$?
    good=$(count "$tree" PASS)
    bad=$(count "$tree" '\(FAIL\|ERROR\|XPASS\|SKIP\)')
    excused=$(grep -c '^SKIP: .*this machine does not allow ' "$log")
    bad=$((bad - excused))
    # If the tree does not build or the runner dies, no case is recorded as failed.
    [ $status = 0 ] || [ "$bad" != 0 ] || bad=1
    [ "$good" != 0 ] || [ "$bad" != 0 ] || bad=1
    echo "$tree: $good passed, $bad failed, $((SECONDS - start)) s"
    grep '^SKIP: .*this machine does not allow ' "$log"
    if [ "$bad" != 0 ]; then
        grep -E '^(FAIL|ERROR|XPASS|SKIP): ' "$log" | grep -v 'this machine does not allow' | head -n 40
        details "$tree" "$log"
    fi
    passed=$((passed + good))
    failed=$((failed + bad))
}

build_tests() # the same
{
    local tree=$1
    shift $(($# < 2 ? $# : 2))
    make -C "_build/$tree" -j "$(nproc)" "$@" check TESTS= >"_build/$tree-check.log" 2>&1
}

count()
{
    find "_build/$1/test" -name '*.trs' -exec cat {} + | grep -c "^:test-result: $2"
}

# Prints the output of the failed tests, or the end of the log if no test ran.
details()
{
    local logs
    logs=$(find "_build/$1/test" -name '*.log' -exec grep -lE '^(not ok|Bail out)' {} +)
    if [ -z "$logs" ]; then
        echo "--- last lines of $2"
        tail -n 40 "$2"
    else
        grep -vhE '^(PASS|FAIL|ERROR):' $logs | grep -E -A 30 '^(not ok|Bail out)' |
            cut -c 1-300 | head -n 200
    fi
}

closing_line()
{
    echo "$passed passed, $failed failed"
    [ $passed -gt 0 ] && [ $failed = 0 ]
}

# The tests of each MPI, with "check", or to build them, with "build_tests". First the second MPI: unit tests
# are neither run nor built there.
on_openmpi() # check|build_tests
{
    local core
    take_core openmpi
    NBC_AGAIN=1 "$1" openmpi '$(filter-out $(once_tests) $(mostly_once_tests),$(shell_tests)) test/mpi/run.sh' \
        check_PROGRAMS= "${built_again[@]}" "${core[@]}"
}
tests_again='$(filter-out $(once_tests),$(shell_tests))' # in the soak
built_again=(check_LTLIBRARIES=test/mpi/yield.la)

# Builds and tests the library for an MPI that has only MPI-2.2 (test/mpi22). Only the programs that run
# are built.
build_mpi22()
{
    logged mpi22-standin env MPIEXEC="$(mpich_launcher | cut -d ' ' -f 1)" test/mpi22/standin.sh _build/mpi22-standin
    NBC_SHARED_CFLAGS= configure_tree mpi22 "$root/_build/mpi22-standin/bin/mpicc22" CFLAGS=-O0
}

# What knows no MPI is compiled once: build_all, or check_all, has just built it in the first tree.
take_core() # tree
{
    core=()
    [ -n "${core_is_new:-}" ] || return 0
    mkdir -p "_build/$1/.libs"
    cp -p _build/mpich/libnbc_core.la _build/mpich/libnbcsim.la "_build/$1"
    cp -p _build/mpich/.libs/libnbc_core.a _build/mpich/.libs/libnbcsim.a "_build/$1/.libs"
    core=(libnbc_core_la_OBJECTS= libnbcsim_la_OBJECTS=)
}

# Not the cases with variables, but for the programs that have no others, nor those that take long.
on_mpi22() # check|build_tests
{
    local core
    build_mpi22
    take_core mpi22
    NBC_TESTS="^((${mpi22_tests// /|}|large empty sparse), [1-3] ranks, (preload|link|static)|(fuzz|matrix), [1-3] ranks, preload, .*)$" \
        NBC_SKIP='^(large, 2|(collectives|lifetimes), 3|fuzz.*(NBC_DEVICE|NBCSHIM_TUNING)=)' "$1" mpi22 \
        "test/mpi22/link.sh test/abi/symbols.sh test/abi/header.sh test/mpi/run.sh" \
        lib_LTLIBRARIES=libnbcshim.la bin_PROGRAMS= pkglibexec_PROGRAMS= check_PROGRAMS= \
        noinst_LTLIBRARIES=libnbc_core.la check_LTLIBRARIES=test/mpi/yield.la mpi_tests="$mpi22_tests" "${core[@]}"
}
mpi22_tests="collectives errors fuzz inter large lifetimes local_calls matrix neighbors traps"

# A program that is built and never run counts as failed.
check_mpi22()
{
    local program
    on_mpi22 check
    for program in $mpi22_tests; do
        grep -qE "^(not )?ok [0-9]+ - $program\b" _build/mpi22/test/mpi/run.log && continue
        echo "mpi22: no case of $program was run"
        failed=$((failed + 1))
    done
}

# Builds and tests the library for SMPI. Its programs are linked statically.
configure_smpi()
{
    NBC_SHARED_CFLAGS= configure_tree smpi smpicc CFLAGS=-O0
}

on_smpi() # check|build_tests
{
    local core
    configure_smpi
    take_core smpi
    "$1" smpi test/mpi/run.sh \
        bin_PROGRAMS= check_PROGRAMS= check_LTLIBRARIES= noinst_LTLIBRARIES=libnbc_core.la shell_programs= \
        "${core[@]}"
}

# A tree that is there is taken as it was configured.
need_tree() # MPI
{
    [ -f "_build/$1/Makefile" ] && return
    install_packages
    bootstrap
    configure_tree "$1" "mpicc.$1"
}

# The choice is in test/loop.mk (fast_tests) and test/mpi/tests.list (fast=). The unit tests once.
check_fast()
{
    export NBC_FAST=1
    need_tree mpich
    need_tree openmpi
    check mpich '$(fast_tests)' shell_programs=
    check openmpi '$(filter %.sh,$(fast_tests))' shell_programs=
    closing_line
}

check_quick()
{
    export NBC_TESTS='^(collectives|fuzz|requests|waits|lifetimes|idup), 2 ranks, preload$'
    need_tree mpich
    need_tree openmpi
    check mpich '$(filter-out test/unit/test_algs,$(unit_tests)) test/mpi/run.sh' shell_programs=
    check openmpi test/mpi/run.sh check_PROGRAMS= shell_programs=
    closing_line
}

check_one() # MPI TEST
{
    [[ " $mpis " == *" ${1:-?} "* ]] && [ $# = 2 ] || die "usage: ./quickstart check-one mpich|openmpi TEST"
    need_tree "$1"
    make -C "_build/$1" -s -j "$(nproc)" check-one TEST="$2"
}

# Runs a command as one more case, and shows its output if it fails.
check_command() # NAME COMMAND...
{
    local name=$1
    shift
    if "$@" >"_build/$name.log" 2>&1; then
        passed=$((passed + 1))
        echo "$name: $(tail -n 1 "_build/$name.log")"
    else
        failed=$((failed + 1))
        echo "$name: failed"
        tail -n 60 "_build/$name.log"
    fi
}

# CHECK_FORMAT=1: the sources have the format of .clang-format.
format_is_right()
{
    local program=clang-format files
    ! command -v clang-format-14 >/dev/null || program=clang-format-14
    mapfile -t files < <(git ls-files '*.c' '*.h')
    [ ${#files[@]} -gt 0 ] && printf '%s\0' "${files[@]}" |
        xargs -0 -n 50 -P "$(nproc)" $program --dry-run -Werror && echo "${#files[@]} files"
}

check_all()
{
    local core_is_new=yes
    [ -z "${CHECK_FORMAT:-}" ] || check_command clang-format format_is_right
    build_ahead &
    check mpich
    wait
    beside check_others &
    on_openmpi check
    wait
    counts_of_beside
}

check_others()
{
    check_mpi22
    on_smpi check
    [ -z "${CHECK_NEWEST:-}" ] || check_newest_briefly
    [ -z "${CHECK_PROGRAMS:-}" ] || run_programs --brief
}

# Runs a command beside the tests of another tree, which leave processors idle. What it says comes at its end.
beside() # COMMAND...
{
    rm -f _build/beside.counts
    passed=0 failed=0
    "$@" >_build/beside.log 2>&1
    echo "$passed $failed" >_build/beside.counts
}

counts_of_beside()
{
    local good=0 bad=1 # if it has not come to its end
    cat _build/beside.log
    [ ! -f _build/beside.counts ] || read -r good bad <_build/beside.counts
    passed=$((passed + good))
    failed=$((failed + bad))
}

# What the first tests leave of the processors, since some of them wait, builds the trees of the later ones. What
# fails is told of when it is built again.
build_ahead()
{
    renice -n 19 "$BASHPID" >/dev/null
    on_openmpi build_tests
    (on_mpi22 build_tests)
    on_smpi build_tests
    [ -z "${CHECK_NEWEST:-}" ] || { newest_install openmpi && newest_install mpich-ofi; }
} 2>/dev/null

# Builds the fuzzer in a tree and runs it.
fuzz() # TREE SECONDS [ARGUMENT...]
{
    local tree=$1 seconds=$2
    shift 2
    logged "$tree-fuzz-build" make -C "_build/$tree" -j "$(nproc)" \
        bin_PROGRAMS= check_PROGRAMS= mpi_tests=fuzz check TESTS=
    check_command "$tree-fuzz$(printf %s "${*:+-$*}" | tr -c 'a-zA-Z0-9\n-' _)" \
        env -C "_build/$tree" "$root/test/fuzz" --seconds="$seconds" "$@"
}

# Programs of others, natively and under nbcshim.
run_programs() # [--brief | NAME...]
{
    local log=_build/programs.log closing
    test/programs/run "$@" 2>&1 | tee "$log"
    [ "${1:-}" = --brief ] || test/programs/run --page
    closing=$(tail -n 1 "$log")
    passed=$((passed + ${closing%% *}))
    closing=${closing#*, }
    failed=$((failed + ${closing%% *}))
}

# Unit tests are run in the first tree.
run_coverage()
{
    local mpi trees= tests='$(coverage_tests)'
    for mpi in $mpis; do
        build $mpi-coverage $mpi --enable-coverage
        find "_build/$mpi-coverage" -name '*.gcda' -delete
        check $mpi-coverage "$tests"
        tests='$(filter-out $(unit_tests),$(coverage_tests))'
        trees="$trees _build/$mpi-coverage"
    done
    check_command uncovered test/uncovered $trees
    closing_line
}
