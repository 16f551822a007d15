#!/usr/bin/env bash
# What the libraries define and what they need of others.

. "$(dirname "$0")/../lib.sh"
export LC_ALL=C

archive=.libs/lib$NBC_NAME.a
nm -D --defined-only "$library" | sed 's/.* //; s/@.*//' | sort -u >"$scratch/exported"
nm -D --undefined-only "$library" | sed 's/.* //; s/@.*//' | sort -u >"$scratch/needed"
mpi22_functions >"$scratch/mpi22"

# nothing NAME < LINES: passes when there are no lines.
nothing()
{
    local lines
    lines=$(cat)
    [ -z "$lines" ]
    result $? "$1" "$lines"
}

# Every function that the header declares, MPI_ and PMPI_.
header_functions()
{
    echo '#include <nbcshim.h>' | $CC -E -I"$srcdir/include" $MPI_CPPFLAGS - |
        awk '/^# [0-9]+ "/ { ours = /nbcshim\.h"/ } ours && !/^typedef/' |
        grep -oE '\<(P?MPIX?_[A-Z][a-z]\w*|nbcshim_\w+)( *\(|;)' | tr -d ' (;' | sort -u
}

header_functions >"$scratch/header"
expect "the header declares at least 112 collectives" test "$(grep -c '^MPI_' "$scratch/header")" -ge 112

nothing "every function of the header is exported" \
    < <(comm -13 "$scratch/exported" "$scratch/header")

nothing "nothing else is exported but MPI's names, nbcshim_ and names of MPICH (errors.c) and Open MPI (fortran.c)" \
    < <(grep -vE '^P?MPIX?_[A-Z][a-z]|^p?mpix?_|^nbcshim_|^MPIR_Err_return_comm$|^ompi_\w+_wrapper_f08(_c)?$' \
        "$scratch/exported")

nothing "every MPI_ name has its PMPI_ name" \
    < <(sed -n 's/^MPI_/PMPI_/p' "$scratch/exported" | comm -23 - "$scratch/exported")
nothing "every PMPI_ name has its MPI_ name" \
    < <(sed -n 's/^PMPI_/MPI_/p' "$scratch/exported" | comm -23 - "$scratch/exported")

sed -nE 's/^(COLLECTIVE|NEIGHBORHOOD)\(/ /p' "$srcdir/pmpi/op/collectives.def" |
    awk -F '[ ,]+' '{ print "MPIX_" $2 "_init"; print "PMPIX_" $2 "_init" }' | sort -u >"$scratch/extension"
expect "22 persistent collectives have a name of the extension" test "$(grep -c '^MPIX_' "$scratch/extension")" = 22
nothing "they are exported by it, as MPIX_ and as PMPIX_" \
    < <(comm -13 "$scratch/exported" "$scratch/extension")

# So that grep finds where a collective is defined, though macros make its functions.
collectives=$(find "$srcdir/pmpi" -name collectives.def)
nothing "a comment above its row names the functions of each collective" \
    < <(awk -F '[ ,()]+' '/^(COLLECTIVE|NEIGHBORHOOD)\(/ {
            if (above != "/* MPI_" $2 ", MPI_I" $3 ", MPI_" $2 "_init */")
                print $2
        } { above = $0 }' "$collectives")

# The shim reaches the MPI's functions by dlsym, so those of next.def count as needed too; what it
# uses only where the MPI has it stands in NBC_IF there, or between #ifdef and #endif.
{
    sed 's/^PMPI_/MPI_/' "$scratch/needed" | grep '^MPI_'
    sed '/^# *if/,/^# *endif/d' "$srcdir/pmpi/below/next.def" | grep '^FN(' | grep -oP 'FN\(\K\w+' | sed 's/^/MPI_/'
} | sort -u >"$scratch/mpi-needed"
expect "the shared library needs something of an MPI" test -s "$scratch/mpi-needed"
nothing "all that the shared library needs of an MPI is in MPI-2.2" \
    < <(comm -23 "$scratch/mpi-needed" "$scratch/mpi22")
# The addresses of MPICH's Fortran constants are weak: another MPI need not have them.
nothing "nothing private of an MPI is needed but the objects behind its constants" \
    < <(grep -E '^(MPIR|MPID|MPL|ompi|opal|orte|mca|OMPI|OPAL)' "$scratch/needed" |
        grep -vE '^ompi_(mpi_\w+|request_null)$|^OMPI_C_MPI_\w+_FN$|^MPIR_F(08)?_MPI_(IN_PLACE|BOTTOM)$')

needed_libraries()
{
    objdump -p "$1" | awk '$1 == "NEEDED" { print $2 }'
}
needed_libraries "$library" | grep -qE '^lib[a-z]*mpi[a-z0-9]*\.so'
result $? "the MPI's library is needed by the shared library itself"

nm --defined-only "$archive" 2>/dev/null | awk '$2 ~ /[A-Z]/ { print $3 }' | sort -u \
    >"$scratch/static"
nothing "the static library defines no PMPI_ name" \
    < <(grep '^PMPI_' "$scratch/static")
nothing "all global names of the static library begin with MPI_, nbcshim_ or nbc_" \
    < <(grep -vE '^(MPIX?_[A-Z][a-z]|nbcshim_|nbc_)' "$scratch/static" |
        grep -vE '^(__asan|__odr_asan|__tsan|__gcov|__start_|__stop_|__x86\.|DW\.ref\.|\.)')
# Of what selects a variant of a function for the processor, clang makes a global name.
if command -v clang >/dev/null; then
    clang -std=gnu11 -O0 -c -iquote "$srcdir/src" -o "$scratch/kernel.o" "$srcdir/src/kernel.c"
    nothing "built by clang: all global names of the kernels begin with nbc_" \
        < <(nm -g --defined-only "$scratch/kernel.o" 2>&1 | awk '{ print $NF }' | grep -v '^nbc_')
fi
# A program that refers to one collective only has all wrappers: its shared libraries may need them.
cat >"$scratch/one.c" <<'EOF'
#include <nbcshim.h>
int main(void)
{
    MPI_Request request;
    return MPI_Ibarrier(MPI_COMM_WORLD, &request);
}
EOF
sanitize=
[ "$SANITIZE" = no ] || sanitize=-fsanitize=$SANITIZE
$CC $sanitize -I"$srcdir/include" $MPI_CPPFLAGS -o "$scratch/one" "$scratch/one.c" "$archive" \
    .libs/libnbc_core.a $MPI_LIBS -lpthread -ldl 2>"$scratch/log"
result $? "a program links with the static library"
nm --defined-only "$scratch/one" | awk '$2 == "T" { print $3 }' | sort -u >"$scratch/linked"
nothing "all wrappers are linked in any case" \
    < <(grep '^MPI_' "$scratch/static" | comm -23 - "$scratch/linked")

nothing "the static library has every function of the shared one" \
    < <(grep '^MPI_' "$scratch/exported" | comm -23 - "$scratch/static")

finish
