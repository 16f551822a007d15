# For quickstart (bash), whose functions it uses: the MPIs that PyPI has, each in an environment of its own.

newest_mpis="impi mpich openmpi"
newest_packages() # mpi
{
    case $1 in
    impi) echo impi-rt impi-devel ;;
    mpich-ofi) echo mpich==4.2.3 ;; # the last one whose hook is that of its device
    *) echo "$1" ;;
    esac
}

# Makes the environment of an MPI, or says why not in newest_lack; the status is 2 if no fault of this tree.
newest_install() # mpi
{
    local environment=_build/newest/environment-$1 log=_build/newest/install-$1.log
    local pip=(_build/newest/environment-openmpi/bin/pip --python "$environment/bin/python") without=--without-pip
    if [ "$1" != mpich-ofi ] || [ ! -x "${pip[0]}" ]; then
        pip=("$environment/bin/pip") without= # to make a pip takes 5 s
    fi
    [ ! -f "$environment/complete" ] || return 0
    mkdir -p _build/newest
    rm -rf "$environment"
    if ! python3 -m venv $without "$environment" >"$log" 2>&1; then
        newest_lack="python3 makes no environment (Debian: python3-venv)"
        return 2
    fi
    if ! "${pip[@]}" install --disable-pip-version-check --no-compile --retries 1 --timeout 20 \
        $(newest_packages "$1") >>"$log" 2>&1; then
        newest_lack=$(tail -n 1 "$log")
        ! grep -q 'from versions: none' "$log" || newest_lack="PyPI cannot be reached"
        [ "$newest_lack" = "PyPI cannot be reached" ] && return 2 || return 1
    fi
    touch "$environment/complete"
}

newest_version() # mpi
{
    "_build/newest/environment-$1/bin/pip" list --format=freeze 2>/dev/null | tr _ - |
        grep "^$(newest_packages "$1" | sed 's/ .*//')=="
}

# Builds for an MPI and runs the cases that NBC_TESTS and NBC_FAST choose.
check_newest_mpi() # mpi
{
    local mpi=$1 good=$passed bad=$failed start=$SECONDS newest_lack=
    newest_install "$mpi"
    case $? in
    0) ;;
    2)
        newest_table+=("$mpi skipped: $newest_lack")
        echo "newest/$mpi: skipped: $newest_lack"
        return
        ;;
    *)
        echo "newest/$mpi: cannot be installed: $newest_lack"
        failed=$((failed + 1))
        return
        ;;
    esac
    configure_tree "newest/$mpi" "$root/_build/newest/environment-$mpi/bin/mpicc"
    check "newest/$mpi" test/mpi/run.sh bin_PROGRAMS= pkglibexec_PROGRAMS= check_PROGRAMS= shell_programs= \
        noinst_LTLIBRARIES=libnbc_core.la check_LTLIBRARIES=test/mpi/yield.la
    newest_table+=("$(newest_version "$mpi") $((passed - good)) passed, $((failed - bad)) failed, $((SECONDS - start)) s")
}

check_newest() # mpi...
{
    local mpi newest_table=()
    for mpi in ${*:-$newest_mpis}; do
        [[ " $newest_mpis " == *" $mpi "* ]] || die "newest knows $newest_mpis"
        NBC_FAST=1 check_newest_mpi "$mpi"
    done
    echo
    printf '%s\n' "${newest_table[@]}"
}

# Installs an MPI for a few programs; one that cannot be installed is a failure, unless it is not to be had.
newest_has() # mpi
{
    newest_lack=
    newest_install "$1"
    case $? in
    0) return 0 ;;
    2) echo "newest: $1 is skipped: $newest_lack" ;;
    *) echo "newest: $1: $newest_lack" && failed=$((failed + 1)) ;;
    esac
    return 1
}

# A program of test/mpi on MPICH's device ch4:ofi, whose hook is found.
run_on_ofi() # program
{
    local place=$root/_build/newest/environment-mpich-ofi out=_build/newest-ofi.out
    ln -sf libmpi.so.12 "$place/lib/libmpich.so.12" # Debian's name, for which it was built
    MPIR_CVAR_CH4_NETMOD=ofi LD_LIBRARY_PATH=$place/lib timeout 60 "$place/bin/mpiexec" -n 3 \
        -genv NBCSHIM_STATS 1 -genv LD_PRELOAD "$root/_build/mpich/.libs/libnbcshim.so" \
        "_build/mpich/test/mpi/$1.preload" >$out 2>&1
    local status=$?
    cat $out
    [ $status = 0 ] && grep "progress in the MPI's own waits: by fi_cq_read" $out
}

# What was built on Open MPI 4.1 runs on the newest one, what was built on Debian's MPICH runs on one with another
# device: a minute's choice for each change, which compiles nothing.
check_newest_briefly()
{
    local program newest_lack place=$root/_build/newest/environment-openmpi
    if newest_has openmpi; then
        for program in collectives requests requests_arrays lifetimes; do
            check_command "newest-$program" env LD_LIBRARY_PATH="$place/lib" timeout 60 "$place/bin/mpiexec" \
                --oversubscribe --bind-to none -n 2 -x LD_LIBRARY_PATH \
                -x LD_PRELOAD="$root/_build/openmpi/.libs/libnbcshim.so" "_build/openmpi/test/mpi/$program.preload"
        done
    fi
    newest_has mpich-ofi || return 0
    for program in collectives progress progress_windows; do
        check_command "newest-ofi-$program" run_on_ofi $program
    done
}

# --- mpi4py's own tests ---------------------------------------------------------------------------

# The ways to run them: settings of nbcshim, the first without it.
mpi4py_ways=(native default NBCSHIM=on NBCSHIM_BLOCKING=own)

# Installs mpi4py, and unpacks its tests, which are in the archive of its sources alone.
install_mpi4py() # mpi
{
    local pip="_build/newest/environment-$1/bin/pip --disable-pip-version-check" version
    logged "newest/mpi4py-$1" $pip install mpi4py
    version=$($pip list --format=freeze | sed -n 's/^mpi4py==//p')
    [ ! -d "_build/newest/mpi4py-$version" ] || return 0
    logged newest/mpi4py $pip download --no-deps --no-binary mpi4py -d _build/newest "mpi4py==$version"
    tar -C _build/newest -xzf "_build/newest/mpi4py-$version.tar.gz"
}

# Runs a module of the tests in one of the ways. Writes the result of each case on each rank, and the exit status.
run_mpi4py() # mpi ranks way module directory
{
    local place=$root/_build/newest/environment-$1 library=$root/_build/newest/$1/.libs/libnbcshim.so way=$3 slots=
    [ "$1" != openmpi ] || slots="--oversubscribe --bind-to none"
    [ "$way" != native ] || library=
    [[ $way == *=* ]] || way=NBC_WAY=$way
    rm -f "$5"/rank.*
    env -C "$(echo "$root"/_build/newest/mpi4py-*/test)" I_MPI_ROOT="$place" "$way" timeout -k 10 300 \
        "$place/bin/mpiexec" $slots -n "$2" sh -c "LD_PRELOAD=$library exec '$place/bin/python' main.py -v $4 \
        >$5/rank.\${OMPI_COMM_WORLD_RANK:-\$PMI_RANK} 2>&1" >"$5/launcher" 2>&1
    echo "exit status $?"
    sed -nE 's/^(test[A-Za-z0-9_]+ \([^)]*\)).* \.\.\. (.*)/\1 \2/p' "$5"/rank.* | sort
}

# A case is a module in one way; one that the MPI does not pass alone, by crash or hang, says nothing.
check_mpi4py_on() # mpi ranks
{
    local directory=$root/_build/newest/results-$1-$2 module way good=$passed alone
    mkdir -p "$directory"
    for module in $(cd _build/newest/mpi4py-*/test && echo ${mpi4py_modules:-test_*.py}); do
        module=${module%.py}
        for way in "${mpi4py_ways[@]}"; do
            run_mpi4py "$1" "$2" "$way" "$module" "$directory" >"$directory/$way"
            if [ "$way" = native ]; then
                alone=$(sed -n 's/^exit status //p' "$directory/native")
                [ "$alone" -gt 1 ] || continue
                echo "mpi4py/$1, $2 ranks: $module ends with $alone natively: left out"
                break
            fi
            if [ "$(wc -l <"$directory/$way")" -gt 1 ] && diff "$directory/native" "$directory/$way" >"$directory/diff"; then
                passed=$((passed + 1))
            else
                failed=$((failed + 1))
                echo "mpi4py/$1, $2 ranks: $module, $way: other results than natively"
                head -n 10 "$directory/diff"
            fi
        done
    done
    echo "mpi4py/$1, $2 ranks: $((passed - good)) passed"
}

soak_newest()
{
    local mpi ranks newest_table=() newest_lack=
    for mpi in $newest_mpis; do
        NBC_FAST=1 step newest-$mpi check_newest_mpi $mpi
        newest_install "$mpi" || continue
        install_mpi4py "$mpi"
        for ranks in 2 3; do
            step "mpi4py-$mpi-$ranks" check_mpi4py_on "$mpi" $ranks
        done
    done
}
