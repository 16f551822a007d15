# What the MPI below is, has and lacks.
#
# Nothing here asks MPI_VERSION: an MPI may have functions of a later standard, or lack some of its
# own. What counts is what links.

# NBC_FIND_MPI
# Sets MPICC, MPIEXEC, MPI_CPPFLAGS, MPI_PROGRAM_CPPFLAGS, MPI_LIBS, MPI_NEEDED, NBC_MPI_FLAVOR, NBC_NAME
# and NBC_SIMULATED. The compiler wrapper is asked for
# its flags instead of being used as the compiler, so that the parts that must not see <mpi.h> are
# compiled without it and so that any CC works.
AC_DEFUN([NBC_FIND_MPI], [
AC_ARG_VAR([MPICC], [the MPI's C compiler wrapper, which chooses the MPI])
AC_ARG_VAR([MPIEXEC], [the MPI's launcher, for the tests])
AC_ARG_VAR([MPI_CPPFLAGS], [preprocessor flags for the MPI, instead of the wrapper's])
AC_ARG_VAR([MPI_LIBS], [linker flags for the MPI, instead of the wrapper's])
AS_IF([test -z "$MPICC" && test -z "$MPI_LIBS"], [NBC_SEARCH_MPICC])
nbc_wrapper=`AS_ECHO(["$MPICC"]) | sed 's/ .*//'`
AS_IF([test -n "$MPICC" && ! command -v "$nbc_wrapper" >/dev/null],
    [AC_MSG_ERROR([there is no program $nbc_wrapper, which MPICC names])])

# Open MPI's wrapper knows --showme, MPICH's kin -show; others at least -compile_info.
nbc_ask_wrapper ()
{
    nbc_link=
    if nbc_compile=`$MPICC --showme:compile 2>/dev/null`; then
        nbc_link=`$MPICC --showme:link 2>/dev/null`
    elif nbc_compile=`$MPICC -show 2>/dev/null`; then
        nbc_link=$nbc_compile
    elif nbc_compile=`$MPICC -compile_info 2>/dev/null`; then
        nbc_link=`$MPICC -link_info 2>/dev/null`
    fi
}

AC_MSG_CHECKING([for the flags of $MPICC])
nbc_ask_wrapper
# The wrappers of PyPI's Intel MPI know their place from I_MPI_ROOT alone.
AC_ARG_VAR([I_MPI_ROOT], [the directory of Intel MPI, if its wrappers do not know it])
AS_CASE([$nbc_compile], [*I_MPI_SUBSTITUTE_INSTALLDIR*], [
    nbc_wrapper=`command -v "$nbc_wrapper"`
    I_MPI_ROOT=`AS_DIRNAME(["$nbc_wrapper"])`
    I_MPI_ROOT=`cd "$I_MPI_ROOT/.." && pwd`
    export I_MPI_ROOT
    nbc_ask_wrapper])
nbc_compile=`AS_ECHO(["$nbc_compile"]) | $AWK -f "$srcdir/m4/words.awk"`
nbc_link=`AS_ECHO(["$nbc_link"]) | $AWK -f "$srcdir/m4/words.awk"`
nbc_blank=`AS_ECHO(["$nbc_compile
$nbc_link"]) | grep '^-[[IL]].*[[ 	]]' | sed q`
AS_IF([test -n "$nbc_blank"],
    [AC_MSG_ERROR([make cannot pass on the blank in "$nbc_blank", a flag of $MPICC; name the MPI by a path without blanks])])
AS_IF([test -z "$MPI_CPPFLAGS"], [
    for nbc_word in $nbc_compile; do
        AS_CASE([$nbc_word], [-I* | -isystem* | -D* | -pthread], [MPI_CPPFLAGS="$MPI_CPPFLAGS $nbc_word"])
    done])
# What is included before each file of a program that the MPI runs, and not of other programs.
MPI_PROGRAM_CPPFLAGS= nbc_before=
for nbc_word in $nbc_compile; do
    AS_CASE([$nbc_before], [-include], [MPI_PROGRAM_CPPFLAGS="$MPI_PROGRAM_CPPFLAGS -include $nbc_word"])
    nbc_before=$nbc_word
done
AC_SUBST([MPI_PROGRAM_CPPFLAGS])
AS_IF([test -z "$MPI_LIBS"], [
    for nbc_word in $nbc_link; do
        AS_CASE([$nbc_word],
            [-L* | -l* | -Wl,* | -pthread | *.a | *.so], [MPI_LIBS="$MPI_LIBS $nbc_word"])
    done])
AC_MSG_RESULT([$MPI_CPPFLAGS $MPI_LIBS])

MPI_NEEDED="-Wl,--no-as-needed"
for nbc_word in $MPI_LIBS; do
    AS_CASE([$nbc_word], [-L* | -l*], [MPI_NEEDED="$MPI_NEEDED -Wl,$nbc_word"])
done
AC_SUBST([MPI_NEEDED])

# The launcher that belongs to the wrapper: mpicc.x -> mpiexec.x, in the same directory if it has
# one. That of mpicc_abi is mpiexec.
AS_IF([test -z "$MPIEXEC"],
    [MPIEXEC=`AS_ECHO(["$MPICC"]) | sed 's/ .*//; s/mpicc_abi$/mpicc/; s,mpicc\([[^/]]*\)$,mpiexec\1,'`])

nbc_save_CPPFLAGS=$CPPFLAGS nbc_save_LIBS=$LIBS
CPPFLAGS="$CPPFLAGS $MPI_CPPFLAGS" LIBS="$MPI_LIBS $LIBS"
AC_MSG_CHECKING([whether an MPI program compiles and links])
AC_LANG_CONFTEST([AC_LANG_PROGRAM([[#include <mpi.h>]], [[return MPI_Init(0, 0);]])])
AS_IF([eval "$ac_link" 2>conftest.err && test -s conftest$ac_exeext],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     NBC_BLAME])
rm -f conftest*
AC_MSG_CHECKING([for the functions of MPI-2.2])
AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>]], [[int in, out, weighted;
        MPI_Reduce_local(0, 0, 0, MPI_INT64_T, MPI_SUM);
        return MPI_Dist_graph_neighbors_count(MPI_COMM_WORLD, &in, &out, &weighted);]])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([nbcshim needs an MPI with MPI-2.2; that of $MPICC is older])])
CPPFLAGS=$nbc_save_CPPFLAGS LIBS=$nbc_save_LIBS

NBC_MPI_FAMILY
NBC_MPI_SIMULATES
])

# NBC_SEARCH_MPICC
# Sets MPICC to the first wrapper in PATH: that of an environment that is active precedes the system's.
AC_DEFUN([NBC_SEARCH_MPICC], [
AC_MSG_CHECKING([for the compiler wrapper of an MPI])
nbc_save_IFS=$IFS
IFS=:
for nbc_directory in $PATH; do
    for nbc_name in mpicc.mpich mpicc mpicc.openmpi; do
        AS_IF([test -z "$MPICC" && test -f "$nbc_directory/$nbc_name" && test -x "$nbc_directory/$nbc_name"],
            [MPICC=$nbc_directory/$nbc_name])
    done
done
IFS=$nbc_save_IFS
AC_MSG_RESULT([${MPICC:-none}])
AS_IF([test -z "$MPICC"],
    [AC_MSG_ERROR([no MPI found; name its compiler wrapper: ./configure MPICC=/path/to/mpicc])])
])

# NBC_BLAME
# Ends configure, which could not build the program conftest.c: says whether MPICC can, and the first error.
AC_DEFUN([NBC_BLAME], [
nbc_first_error ()
{
    cat conftest.err >&AS_MESSAGE_LOG_FD
    grep -i -e error -e undefined -e cannot conftest.err | sed q
}
nbc_error=`nbc_first_error`
AS_IF([test -z "$MPICC"],
        [AC_MSG_ERROR([$CC cannot build an MPI program with MPI_CPPFLAGS and MPI_LIBS: $nbc_error])],
    [$MPICC conftest.$ac_ext -o conftest-wrapper >conftest.err 2>&1],
        [AC_MSG_ERROR([$MPICC builds an MPI program, but $CC with its flags does not: $nbc_error])])
nbc_error=`nbc_first_error`
AC_MSG_ERROR([$MPICC cannot build an MPI program: $nbc_error])
])

# NBC_MPI_FAMILY
# Sets NBC_MPI_FLAVOR: which family the MPI is of, and NBC_MPI_LAUNCHER, for the tests: whose options its
# launcher has.
# A header of the ABI of MPI-5 tells nothing else: abi. Its library has a name of its own, NBC_NAME,
# because it serves programs that a library for one family of MPIs cannot serve.
AC_DEFUN([NBC_MPI_FAMILY], [
AC_MSG_CHECKING([for the family of the MPI])
nbc_save_CPPFLAGS=$CPPFLAGS
CPPFLAGS="$CPPFLAGS $MPI_CPPFLAGS"
NBC_MPI_FLAVOR=other
AC_PREPROC_IFELSE([AC_LANG_SOURCE([[
#include <mpi.h>
#ifndef OPEN_MPI
#error
#endif]])], [NBC_MPI_FLAVOR=openmpi],
    [AC_PREPROC_IFELSE([AC_LANG_SOURCE([[
#include <mpi.h>
#if !defined(MPICH_VERSION) && !defined(MPICH2_VERSION) && !defined(MPICH)
#error
#endif]])], [NBC_MPI_FLAVOR=mpich],
    [AC_PREPROC_IFELSE([AC_LANG_SOURCE([[
#include <mpi.h>
#ifndef SMPI_H
#error
#endif]])], [NBC_MPI_FLAVOR=smpi],
    [AC_PREPROC_IFELSE([AC_LANG_SOURCE([[
#include <mpi.h>
#if !defined(MPI_ABI_VERSION) || MPI_ABI_VERSION < 1
#error
#endif]])], [NBC_MPI_FLAVOR=abi])])])])
CPPFLAGS=$nbc_save_CPPFLAGS
AC_MSG_RESULT([$NBC_MPI_FLAVOR])
AC_SUBST([NBC_MPI_FLAVOR])
NBC_NAME=nbcshim
AS_IF([test $NBC_MPI_FLAVOR = abi], [
    NBC_NAME=nbcshim_abi
    AC_DEFINE([NBC_ABI], [1], [Define to 1 if the MPI has the ABI of MPI-5.])])
AC_SUBST([NBC_NAME])
nbc_eager=16384
AS_IF([test $NBC_MPI_FLAVOR = openmpi], [nbc_eager=61440])
AC_DEFINE_UNQUOTED([NBC_SOCKETS_EAGER], [$nbc_eager],
    [What the MPI sends over sockets without a handshake, unless it has been told otherwise: Open MPI 64 KiB
     with its header, MPICH over UCX less than 24 KiB.])
NBC_MPI_LAUNCHER=$NBC_MPI_FLAVOR
AS_CASE([$NBC_MPI_FLAVOR], [abi | mpich],
    [AS_CASE([`$MPIEXEC --version 2>/dev/null </dev/null`],
        [*"Open MPI"* | *OpenRTE* | *PRRTE*], [NBC_MPI_LAUNCHER=openmpi], [NBC_MPI_LAUNCHER=mpich])])
AC_SUBST([NBC_MPI_LAUNCHER])
])

# NBC_MPI_SIMULATES
# Sets NBC_SIMULATED to whether the MPI simulates its ranks within one process (pmpi/below/next.h).
# Its programs are shared objects of which each rank has a copy; only a static nbcshim is part of that.
AC_DEFUN([NBC_MPI_SIMULATES], [
NBC_SIMULATED=no
AS_IF([test "$NBC_MPI_FLAVOR" = smpi], [
    NBC_SIMULATED=yes
    MPIEXEC=`AS_ECHO(["$MPICC"]) | sed 's/ .*//; s,smpicc$,smpirun,'`
    MPI_CPPFLAGS="$MPI_CPPFLAGS -DSMPI_NO_OVERRIDE_MALLOC"
    NBC_CFLAGS="$NBC_CFLAGS -fPIC"
    enable_shared=no
    AC_DEFINE([NBC_SIMULATED], [1],
        [Define to 1 if the MPI simulates its ranks within one process, in virtual time.])])
AC_SUBST([NBC_SIMULATED])
AM_CONDITIONAL([SIMULATED], [test $NBC_SIMULATED = yes])
])

# NBC_CHECK_CONST(MACRO, WHAT, DECLARATION)
# Defines MACRO as const if the declaration, which has it, agrees with the one in the MPI's header.
AC_DEFUN([NBC_CHECK_CONST], [
AC_MSG_CHECKING([whether the prototype of $2 has const])
AC_COMPILE_IFELSE([AC_LANG_PROGRAM([#include <mpi.h>
$3])],
    [nbc_const=const], [nbc_const=])
AS_IF([test -n "$nbc_const"], [AC_MSG_RESULT([yes])], [AC_MSG_RESULT([no])])
AC_DEFINE_UNQUOTED([$1], [$nbc_const], [const where the MPI's prototype of $2 has it])
])

# What is looked for: everything that came after MPI-2.2 and that nbcshim either calls when it is
# there, wraps, or offers itself. A name here gives HAVE_MPI_NAME in config.h (in upper case) when
# MPI_Name links. To add one, add a word.
m4_define([NBC_MPI_NAMES], [
    Ibarrier Ibcast Igather Igatherv Iscatter Iscatterv Iallgather Iallgatherv Ialltoall
    Ialltoallv Ialltoallw Ireduce Iallreduce Ireduce_scatter_block Ireduce_scatter Iscan Iexscan
    Neighbor_allgather Neighbor_allgatherv Neighbor_alltoall Neighbor_alltoallv Neighbor_alltoallw
    Ineighbor_allgather Ineighbor_allgatherv Ineighbor_alltoall Ineighbor_alltoallv
    Ineighbor_alltoallw
    Barrier_init Bcast_init Gather_init Gatherv_init Scatter_init Scatterv_init Allgather_init
    Allgatherv_init Alltoall_init Alltoallv_init Alltoallw_init Reduce_init Allreduce_init
    Reduce_scatter_block_init Reduce_scatter_init Scan_init Exscan_init Neighbor_allgather_init
    Neighbor_allgatherv_init Neighbor_alltoall_init Neighbor_alltoallv_init
    Neighbor_alltoallw_init
    Bcast_c Gather_c Gatherv_c Scatter_c Scatterv_c Allgather_c Allgatherv_c Alltoall_c
    Alltoallv_c Alltoallw_c Reduce_c Allreduce_c Reduce_scatter_block_c Reduce_scatter_c Scan_c
    Exscan_c Neighbor_allgather_c Neighbor_allgatherv_c Neighbor_alltoall_c Neighbor_alltoallv_c
    Neighbor_alltoallw_c
    Ibcast_c Igather_c Igatherv_c Iscatter_c Iscatterv_c Iallgather_c Iallgatherv_c Ialltoall_c
    Ialltoallv_c Ialltoallw_c Ireduce_c Iallreduce_c Ireduce_scatter_block_c Ireduce_scatter_c
    Iscan_c Iexscan_c Ineighbor_allgather_c Ineighbor_allgatherv_c Ineighbor_alltoall_c
    Ineighbor_alltoallv_c Ineighbor_alltoallw_c
    Bcast_init_c Gather_init_c Gatherv_init_c Scatter_init_c Scatterv_init_c Allgather_init_c
    Allgatherv_init_c Alltoall_init_c Alltoallv_init_c Alltoallw_init_c Reduce_init_c
    Allreduce_init_c Reduce_scatter_block_init_c Reduce_scatter_init_c Scan_init_c Exscan_init_c
    Neighbor_allgather_init_c Neighbor_allgatherv_init_c Neighbor_alltoall_init_c
    Neighbor_alltoallv_init_c Neighbor_alltoallw_init_c
    Send_c Ssend_c Rsend_c Bsend_c Recv_c Isend_c Issend_c Irsend_c Ibsend_c Irecv_c Send_init_c
    Ssend_init_c Rsend_init_c Bsend_init_c Recv_init_c Sendrecv_c Sendrecv_replace_c Mrecv_c
    Imrecv_c Reduce_local_c Get_count_c Pack_c Unpack_c Pack_size_c Type_size_c Type_get_extent_c
    Type_get_true_extent_c Type_contiguous_c Type_vector_c Type_indexed_c Type_create_hindexed_c
    Type_create_hvector_c Type_create_struct_c Type_create_resized_c Type_get_envelope_c
    Type_get_contents_c Op_create_c Win_create_c Win_allocate_c
    Win_allocate_shared_c Put_c Get_c Accumulate_c Rput_c
    Rget_c
    Mprobe Improbe Mrecv Imrecv
    Isendrecv Isendrecv_replace Isendrecv_c Isendrecv_replace_c
    Comm_idup Comm_create_group Comm_split_type Comm_dup_with_info Comm_set_info Comm_get_info
    Comm_idup_with_info
    Comm_create_from_group Intercomm_create_from_groups Session_init Session_finalize
    Group_from_session_pset Session_create_errhandler
    Type_size_x Type_get_extent_x Type_get_true_extent_x Get_elements_x Status_set_elements_x
    Type_create_hindexed_block
    Get_library_version
    Win_allocate Win_allocate_shared Win_create_dynamic Win_lock_all Win_unlock_all Win_flush
    Win_flush_all Win_flush_local Win_flush_local_all Win_sync Rput Rget Raccumulate
    Rget_accumulate Get_accumulate Fetch_and_op Compare_and_swap Win_set_info Win_get_info
    Dist_graph_create Dist_graph_create_adjacent Dist_graph_neighbors Dist_graph_neighbors_count
    Reduce_local Reduce_scatter_block Op_commutative Type_create_f90_real
    Testany Testsome Waitsome Request_get_status Grequest_start
    Comm_spawn Comm_spawn_multiple Comm_accept Comm_connect Comm_join Comm_get_parent Open_port
    File_open File_close File_write_all File_iwrite File_set_view File_read_all_c
    File_iread_all File_iwrite_all File_iread_at_all File_iwrite_at_all
    Pready Psend_init Precv_init Parrived
    Request_get_status_any Request_get_status_some Request_get_status_all
    Comm_attach_buffer Buffer_detach_c Buffer_flush Buffer_iflush Session_attach_buffer
    Comm_flush_buffer Comm_iflush_buffer Session_flush_buffer Session_iflush_buffer
    Type_get_value_index Op_toint Abi_get_version
    Remove_error_class Remove_error_code Remove_error_string
    Info_get_string Info_create_env
    T_init_thread T_cvar_get_num T_pvar_get_num
    Status_f2f08 Status_c2f08
    Aint_add Aint_diff
    Keyval_create Attr_get Attr_put Errhandler_create Errhandler_get Errhandler_set Type_extent
    Type_lb Type_ub Type_struct Type_hvector Type_hindexed Address
])

# NBC_PROBE_MPI
# Defines HAVE_MPI_NAME for every name of NBC_MPI_NAMES that links, HAVE_MPI_COUNT and its like for
# types, and NBC_CONST and its like. Sets NBC_HOOK to the function by which the MPI is expected to call nbcshim
# in its progress loop, or no; only the tests use it.
AC_DEFUN([NBC_PROBE_MPI], [
nbc_save_CPPFLAGS=$CPPFLAGS nbc_save_LIBS=$LIBS
CPPFLAGS="$CPPFLAGS $MPI_CPPFLAGS" LIBS="$MPI_LIBS $LIBS"

AC_CHECK_TYPES([MPI_Count, MPI_Message, MPI_Session], [], [], [[#include <mpi.h>]])

# MPICH's functions for progress in its loop. Their types must be declared too, which they are not in a
# header of the ABI.
AS_IF([test $NBC_MPI_FLAVOR != abi],
    [AC_CHECK_FUNCS([MPIX_Async_start MPIX_Request_is_complete])],
    [ac_cv_func_MPIX_Async_start=no])
# The devices ch4:ucx and ch4:ofi of MPICH have one too: pmpi/below/hook.c.
AS_CASE([$NBC_MPI_FLAVOR,$ac_cv_func_MPIX_Async_start],
    [openmpi,*], [NBC_HOOK=opal_progress_register],
    [*,yes], [NBC_HOOK=MPIX_Async_start],
    [mpich,*],
    [AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>]], [[MPI_Init(0, 0);]])],
        [AS_CASE([`ldd conftest$ac_exeext 2>/dev/null`],
            [*libucp*], [NBC_HOOK=ucp_worker_progress],
            [*libfabric*], [NBC_HOOK=fi_cq_read],
            [NBC_HOOK=no])], [NBC_HOOK=no])],
    [NBC_HOOK=no])
AC_SUBST([NBC_HOOK])

NBC_CHECK_CONST([NBC_CONST], [send buffers],
    [extern int MPI_Send(const void *, int, MPI_Datatype, int, int, MPI_Comm);])
# SMPI 3.32 has const elsewhere, but not here.
NBC_CHECK_CONST([NBC_CONST_SPAWN], [MPI_Comm_spawn_multiple],
    [extern int MPI_Comm_spawn_multiple(int, char **, char ***, const int *, const MPI_Info *, int,
                                        MPI_Comm, MPI_Comm *, int *);])
# Nor has Intel MPI 2021.18 here.
NBC_CHECK_CONST([NBC_CONST_STATUS], [MPI_Request_get_status_any],
    [extern int MPI_Request_get_status_any(int, const MPI_Request *, int *, int *, MPI_Status *);])

# A link test for each of some 300 names takes half a minute, so all are linked together first: the
# names that the linker calls undefined are dropped, and what is left must link. Where the linker's
# messages cannot be read, each name is linked alone. nbc_links takes MPI names and succeeds when a
# program that needs them all links; <mpi.h> is left out since it need not declare what the library
# has.
nbc_links ()
{
    {
        for nbc_name in $[]*; do echo "int MPI_$nbc_name(void);"; done
        echo "int (*const volatile nbc_table[[]])(void) = {"
        for nbc_name in $[]*; do echo "MPI_$nbc_name,"; done
        echo "}; int main(void) { return nbc_table[[0]] == 0; }"
    } >conftest.$ac_ext
    rm -f conftest$ac_exeext
    eval "$ac_link" >conftest.err 2>&1 && test -s conftest$ac_exeext
}

nbc_probe ()
{
    nbc_found="$[]*"
    while test -n "$nbc_found"; do
        nbc_links $nbc_found && return
        nbc_undefined=`sed -n '/undefined/s/.*[[^A-Za-z0-9_]]MPI_\([[A-Za-z0-9_]]*\).*/\1/p' conftest.err`
        test -n "$nbc_undefined" || break
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
        nbc_links $nbc_candidate && nbc_found="$nbc_found $nbc_candidate"
    done
}

AC_MSG_CHECKING([which functions the MPI has])
nbc_probe m4_normalize(NBC_MPI_NAMES)
rm -f conftest*
# These are in SMPI 3.32, but end the program.
AS_IF([test $NBC_SIMULATED = yes], [
    nbc_kept=
    for nbc_name in $nbc_found; do
        AS_CASE([$nbc_name], [Comm_idup | Get_elements_x | *probe | Mrecv | Imrecv | Win_sync | Parrived], [],
            [nbc_kept="$nbc_kept $nbc_name"])
    done
    nbc_found=$nbc_kept])
m4_foreach_w([NBC_name], m4_defn([NBC_MPI_NAMES]),
    [AH_TEMPLATE([HAVE_MPI_]m4_toupper(m4_defn([NBC_name])),
        [Define to 1 if the MPI has MPI_]m4_defn([NBC_name])[.])])dnl
for nbc_name in $nbc_found; do
    nbc_upper=`AS_ECHO([$nbc_name]) | tr '[[a-z]]' '[[A-Z]]'`
    AC_DEFINE_UNQUOTED([HAVE_MPI_$nbc_upper], [1])
done
nbc_number=`echo $nbc_found | wc -w`
AC_MSG_RESULT([$nbc_number found])

CPPFLAGS=$nbc_save_CPPFLAGS LIBS=$nbc_save_LIBS
])
