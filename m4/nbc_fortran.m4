# Which collectives the MPI's Fortran binding lacks.

# The names of pmpi/op/collectives.def.
m4_define([NBC_FORTRAN_NAMES], [
    ibarrier ibcast igather igatherv iscatter iscatterv iallgather iallgatherv ialltoall
    ialltoallv ialltoallw ireduce iallreduce ireduce_scatter_block ireduce_scatter iscan iexscan
    ineighbor_allgather ineighbor_allgatherv ineighbor_alltoall ineighbor_alltoallv
    ineighbor_alltoallw
    barrier_init bcast_init gather_init gatherv_init scatter_init scatterv_init allgather_init
    allgatherv_init alltoall_init alltoallv_init alltoallw_init reduce_init allreduce_init
    reduce_scatter_block_init reduce_scatter_init scan_init exscan_init neighbor_allgather_init
    neighbor_allgatherv_init neighbor_alltoall_init neighbor_alltoallv_init
    neighbor_alltoallw_init
])

# NBC_PROBE_FORTRAN
# Sets MPIFC and NBC_FORTRAN_LACKS, and defines NBC_FORTRAN, and NBC_FORTRAN_NAME as 1 or 0 for every
# name. Nothing of it is needed: without a Fortran compiler for this MPI there are no entry points
# and no modules, and without the MPI's module no modules. HAVE_FORTRAN, HAVE_FORTRAN_F08 tell the makefile.
AC_DEFUN([NBC_PROBE_FORTRAN], [
AC_ARG_VAR([MPIFC], [the MPI's Fortran compiler wrapper; no: leave Fortran out])
# Beside MPICC: MPICH2 and Intel MPI have mpif90 alone.
for nbc_name in mpifort mpif90; do
    nbc_wrapper=`AS_ECHO(["$MPICC"]) | sed "s/ .*//; s,mpicc\([[^/]]*\)\\$,$nbc_name\1,"`
    AS_IF([test -z "$MPIFC" && command -v "$nbc_wrapper" >/dev/null], [MPIFC=$nbc_wrapper])
done

# Fortran wants no config header in front, so that these programs are compiled by hand.
nbc_fortran_links ()
{
    rm -f conftest conftest.f90
    cat >conftest.f90
    $MPIFC conftest.f90 -o conftest $LIBS >conftest.err 2>&1 && test -s conftest
}

# The same as nbc_probe of nbc_probe.m4, in Fortran: how the compiler spells names is its own affair.
nbc_fortran_calls ()
{
    {
        echo "program nbc"
        for nbc_name in $[]*; do echo "external :: mpi_$nbc_name"; done
        for nbc_name in $[]*; do echo "call mpi_$nbc_name()"; done
        echo "end program"
    } | nbc_fortran_links
}

nbc_probe_fortran ()
{
    nbc_found="$[]*"
    while test -n "$nbc_found"; do
        nbc_fortran_calls $nbc_found && return
        nbc_undefined=`tr '[[A-Z]]' '[[a-z]]' <conftest.err |
            sed -n '/undefined/s/.*[[^a-z0-9_]]mpi_\([[a-z0-9_]]*[[a-z0-9]]\).*/\1/p'`
        nbc_kept=
        for nbc_name in $nbc_found; do
            case " "`echo $nbc_undefined`" " in
            *" $nbc_name "*) ;;
            *) nbc_kept="$nbc_kept $nbc_name" ;;
            esac
        done
        test "$nbc_kept" != "$nbc_found" || break
        nbc_found=$nbc_kept
    done
    nbc_found=
    for nbc_candidate in $[]*; do
        nbc_fortran_calls $nbc_candidate && nbc_found="$nbc_found $nbc_candidate"
    done
}

nbc_save_CPPFLAGS=$CPPFLAGS
CPPFLAGS="$CPPFLAGS $MPI_CPPFLAGS"
AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>]],
    [[char same[sizeof(MPI_Fint) == sizeof(int) ? 1 : -1]; (void)same;]])],
    [nbc_fint=yes; AC_DEFINE([NBC_FINT_IS_INT], [1], [Define to 1 if an INTEGER of Fortran is an int.])],
    [nbc_fint=no])
AC_MSG_CHECKING([for the MPI's Fortran compiler])
nbc_fortran=no
AS_IF([test "$MPIFC" != no && test $nbc_fint = yes && AS_ECHO(["program nbc
include 'mpif.h'
integer :: error
call mpi_init(error)
end program"]) | nbc_fortran_links], [nbc_fortran=yes])
CPPFLAGS=$nbc_save_CPPFLAGS
AS_IF([test $nbc_fortran = yes], [AC_MSG_RESULT([$MPIFC])], [AC_MSG_RESULT([none]); MPIFC=no])

nbc_module=no nbc_f08=no
AS_IF([test $nbc_fortran = yes], [NBC_FIND_MODULE])
NBC_FORTRAN_LACKS=
AS_IF([test $nbc_fortran = yes], [
    AS_ECHO(["program nbc
use mpi_f08
type(MPI_Comm) :: comm
comm = MPI_COMM_WORLD
end program"]) | nbc_fortran_links && nbc_f08=yes
    AC_MSG_CHECKING([which functions its Fortran binding lacks])
    nbc_probe_fortran m4_normalize(NBC_FORTRAN_NAMES)
    for nbc_name in m4_normalize(NBC_FORTRAN_NAMES); do
        case " $nbc_found " in
        *" $nbc_name "*) ;;
        *) NBC_FORTRAN_LACKS="$NBC_FORTRAN_LACKS $nbc_name" ;;
        esac
    done
    nbc_number=`echo $NBC_FORTRAN_LACKS | wc -w`
    AC_MSG_RESULT([$nbc_number])
    AS_IF([test -n "$NBC_FORTRAN_LACKS"],
        [AC_DEFINE([NBC_FORTRAN], [1], [Define to 1 where the MPI's Fortran binding lacks any.])])])
m4_foreach_w([NBC_name], m4_defn([NBC_FORTRAN_NAMES]),
    [AH_TEMPLATE([NBC_FORTRAN_]m4_toupper(m4_defn([NBC_name])),
        [1 if the MPI's Fortran binding lacks mpi_]m4_defn([NBC_name])[, else 0.])])dnl
for nbc_name in m4_normalize(NBC_FORTRAN_NAMES); do
    nbc_upper=`AS_ECHO([$nbc_name]) | tr '[[a-z]]' '[[A-Z]]'`
    case " $NBC_FORTRAN_LACKS " in
    *" $nbc_name "*) AC_DEFINE_UNQUOTED([NBC_FORTRAN_$nbc_upper], [1]) ;;
    *) AC_DEFINE_UNQUOTED([NBC_FORTRAN_$nbc_upper], [0]) ;;
    esac
done
rm -f conftest*
AC_SUBST([NBC_FORTRAN_LACKS])
AM_CONDITIONAL([HAVE_FORTRAN], [test $nbc_module = yes])
AM_CONDITIONAL([HAVE_FORTRAN_F08], [test $nbc_f08 = yes])
])

# NBC_FIND_MODULE
# Sets nbc_module to whether the module mpi is found. PyPI's Intel MPI has it, for gfortran, in a directory
# that its wrapper does not name: then MPIFC gets the directory as an option.
AC_DEFUN([NBC_FIND_MODULE], [
AC_MSG_CHECKING([for its module mpi])
nbc_uses_module ()
{
    echo "program nbc
use mpi
if (MPI_COMM_WORLD == MPI_COMM_NULL) stop 1
end program" | nbc_fortran_links
}
AS_IF([nbc_uses_module], [nbc_module=yes], [
    nbc_wrapper=$MPIFC
    for nbc_directory in `$MPIFC -show 2>/dev/null | $AWK -f "$srcdir/m4/words.awk" | sed -n 's/^-I//p'`; do
        for nbc_directory in "$nbc_directory"/mpi/gfortran/*; do
            test $nbc_module = no && test -f "$nbc_directory/mpi.mod" || continue
            MPIFC="$nbc_wrapper -I$nbc_directory"
            nbc_uses_module && nbc_module=yes
        done
    done
    AS_IF([test $nbc_module = no], [MPIFC=$nbc_wrapper])])
AC_MSG_RESULT([$nbc_module])
])
