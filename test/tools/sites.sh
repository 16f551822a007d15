#!/usr/bin/env bash
# The call sites that nbcrun --compare names: those of sites.cc and sites.f, with and without symbols, and of
# sites.py.

. "$(dirname "$0")/../lib.sh"
forget_settings

# compare NAME PROGRAM...
compare()
{
    local name=$1
    shift
    mpi_command 2 "" "" "$@"
    expect "$name: the program is compared" guarded 60 "$scratch/log" tools/nbcrun --library="$library" \
        --compare --runs=1 --json="$scratch/json" "${launch[@]}"
}

# sites_are NAME <<< python: a list of the sites of the collectives.
sites_are()
{
    json_says "$1" "$scratch/json" <<END
sites = [s['site'] for s in d['sites']]
wanted = $(cat)
assert len(sites) == len(wanted) and all(any(re.fullmatch(w, s) for s in sites) for w in wanted), sites
END
}

if ! command -v g++ python3 addr2line c++filt >/dev/null; then
    echo "1..0 # SKIP g++, python3 or binutils are missing"
    exit 0
fi
method='a_namespace_with_a_[a-z_:0-9]*_in_it::a_structure::reduces_once_and'
allreduce=wrapper_of_allreduce
for debug in -g0 -g; do
    expect "$debug: the C++ program compiles" g++ $debug -O2 -fno-optimize-sibling-calls -DOMPI_SKIP_MPICXX \
        -DMPICH_SKIP_MPICXX $MPI_CPPFLAGS "$srcdir/test/tools/sites.cc" -rdynamic -o "$scratch/sites" $MPI_LIBS
    compare "$debug" "$scratch/sites"
    line='sites ' other= address=' 0x[0-9a-f]+'
    [ $debug = -g0 ] || line='sites\.cc:[0-9]+ ' other=$line address=
    sites_are "$debug: the function, and the method that calls the wrapper" <<END
[r'${line}hidden.*', r'$line$allreduce < ${other}void $method.*first<int>\(int\)', r'$line$allreduce < ${other}void $method.*later<int>\(int\)', r'${line}calls_twice$address', r'${line}calls_twice$address']
END
    log_has 2 "$debug: in text the two differ" 'allreduce < .*(first|later)<int>(\(int\))? +MPI_Allreduce '
    [ "$(grep -oE "${line}calls_twice$address" "$scratch/log" | sort -u | wc -l)" = 2 ]
    result $? "$debug: so do two calls of one function"
done
strip "$scratch/sites"
compare "stripped" "$scratch/sites"
sites_are "stripped: no function but that which has the address; then its caller" <<END
[r'sites $allreduce < void $method.*first<int>\(int\)', r'sites $allreduce < void $method.*later<int>\(int\)', r'sites\+0x[0-9a-f]+ < main', r'sites calls_twice 0x.*', r'sites calls_twice 0x.*']
END

if [ -n "$MPIFC" ] && command -v ${MPIFC%% *} >/dev/null; then
    # Ubuntu's wrapper says -flto, with which lines have no files.
    expect "the Fortran program compiles" $MPIFC -g -O0 -fno-lto "$srcdir/test/tools/sites.f" -o "$scratch/fortran"
    compare "Fortran" "$scratch/fortran"
    sites_are "Fortran: the lines of the program, not the binding" <<END
[r'sites\.f:12 second_caller_?', r'sites\.f:6 first_caller_?']
END
fi

compare "Python" "$(command -v python3)" "$srcdir/test/tools/sites.py"
sites_are "Python: the lines of the program, above its wrapper, not the interpreter" <<END
[r'sites\.py:17 wrapper < sites\.py:21 first', r'sites\.py:17 wrapper < sites\.py:25 later', r'sites\.py:29']
END

finish
