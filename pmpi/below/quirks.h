/* SPDX-License-Identifier: MIT */
/* Works around defects of the MPI below that would hang programs, or give them wrong data. */
#ifndef NBC_QUIRKS_H
#define NBC_QUIRKS_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "below/next.h"

/* --- constants: what the families of MPIs do differently --------------------------------------*/

#ifdef OPEN_MPI
enum { NBC_IS_OPEN_MPI = true };
#else
enum { NBC_IS_OPEN_MPI = false };
#endif
#ifdef MPICH_NUMVERSION
enum { NBC_IS_MPICH = true, NBC_MPICH_VERSION = MPICH_NUMVERSION / 10000000 };
#else
enum { NBC_IS_MPICH = false, NBC_MPICH_VERSION = 0 };
#endif

/* A library for the ABI of MPI-5 learns only when it runs which MPI that is: what keeps Open MPI
 * from hanging or moving wrong bytes does no harm elsewhere. */
#if defined OPEN_MPI || defined NBC_ABI
enum { NBC_MAY_BE_OPEN_MPI = true };
#else
enum { NBC_MAY_BE_OPEN_MPI = false };
#endif

#ifdef I_MPI_VERSION
enum { NBC_IS_INTEL_MPI = true };
#else
enum { NBC_IS_INTEL_MPI = false };
#endif

enum {
    /* A rank waits in a call of the MPI that blocks if only one operation is pending, and does not
     * ask whether messages are complete in vain: where polls take virtual time. */
    NBC_BLOCKS_TO_WAIT = NBC_IS_SIMULATED,

    /* All ranks run this build with these settings, on nodes that tell nothing of the network. */
    NBC_RANKS_ARE_ALIKE = NBC_IS_SIMULATED,

    /* Another thread has no rank, and may not even ask for the time. */
    NBC_MAY_START_THREADS = !NBC_IS_SIMULATED,

    /* SMPI 3.32 frees an inactive request in MPI_Wait. */
    NBC_FREES_INACTIVE = NBC_IS_SIMULATED,

    /* SMPI 3.32 ends the program in MPI_Add_error_class and the like. */
    NBC_MAY_ADD_ERRORS = !NBC_IS_SIMULATED,

    /* Messages of so many bytes are complete when MPI_Isend returns, almost always. To ask about
     * one that is not takes a poll, and on Open MPI also a sched_yield if the ranks share
     * processors, before the other messages are posted. Open MPI 4.1.4 completes up to 256 bytes at
     * once within a node. */
    NBC_EAGER = NBC_IS_OPEN_MPI ? 256 : 8192,

    /* On MPICH from 3.0 on, MPI_Request_get_status polls only for a request that is not complete,
     * and MPI_Test always: for a send that is complete MPI_Test takes 470 instructions on MPICH
     * 4.0.2, the other and MPI_Wait 300. Its poll also takes in the message that follows before its
     * receive is posted, which is then copied twice: a stream of 8 bytes arrives at half the rate.
     * On Open MPI neither polls for a request that is complete. */
    NBC_GET_STATUS_BEFORE_TEST = NBC_MPICH_VERSION >= 3,

    /* If one message fails in PMPI_Testsome, Open MPI also frees those that are under way and whose
     * status holds an error. Then nobody learns when they end, and they use memory that is the
     * program's again. The status of a send is not initialized, so receives, which alone fail, are
     * tested apart. Over UCX the status of a receive may be that of an earlier message that failed:
     * after one failure messages are tested one by one. */
    NBC_TESTSOME_FREES = NBC_MAY_BE_OPEN_MPI,

    /* With a count of zero MPICH accepts any handle as datatype, Open MPI only
     * MPI_DATATYPE_NULL, which programs pass. */
    NBC_ANY_TYPE_FOR_NOTHING = !NBC_MAY_BE_OPEN_MPI,

    /* MPICH returns an error if the receive buffer of rank 0 in an exscan, which is not
     * significant, is the send buffer, and its tests require the error. If rank 0 alone succeeded,
     * it would wait for the ranks whose call failed. */
    NBC_CHECKS_FIRST_OF_EXSCAN = !NBC_IS_OPEN_MPI,

    /* Long messages within a node wait for the receiver: the transports of Open MPI in shared
     * memory (btl_vader_eager_limit, btl_sm_eager_limit). */
    NBC_HANDSHAKE_ON_NODE = NBC_IS_OPEN_MPI,

    /* A fatal error of MPI_Waitall and the like ends the job with the error of the first request
     * that has failed, in place of MPI_ERR_IN_STATUS. */
    NBC_FATAL_OF_REQUEST = NBC_IS_OPEN_MPI,

    /* Open MPI 4.1.4 crashes if a communicator is freed while one of its own nonblocking
     * collectives is pending there. */
    NBC_ENDS_WITH_COMM = NBC_MAY_BE_OPEN_MPI,

    /* The nonblocking collectives of Open MPI take the same address on both sides for MPI_IN_PLACE,
     * although blocks or datatypes may place the data apart. */
    NBC_SAME_IS_IN_PLACE = NBC_MAY_BE_OPEN_MPI,

    /* MPI_Comm_idup of Open MPI starts nonblocking collectives of the parent when it progresses,
     * which takes those that the program starts meanwhile for them. */
    NBC_IDUP_REDUCES = NBC_MAY_BE_OPEN_MPI,

    /* MPI_MIN and MPI_MAX compare unsigned numbers as signed ones: MPICH 4.0.2 all, Open MPI 4.1.4
     * those of type unsigned long, of Debian 12; and numbers of MPI_OFFSET as unsigned ones: Open
     * MPI 4.1.4 and 5.0.11. Intel MPI does not. */
    NBC_MIXES_SIGNS = !NBC_IS_INTEL_MPI,

    /* MPI_SUM of integers of 8 and 16 bits ends at the largest one instead of wrapping, in vectors
     * of 16 bytes or more on processors with AVX: Open MPI 4.1.4, 5.0.11. */
    NBC_SATURATES = NBC_MAY_BE_OPEN_MPI,

    /* Open MPI 4.1.4 crashes if one thread completes a nonblocking operation of a file while
     * another one is in the MPI. */
    NBC_FILES_BEAR_THREADS = !NBC_MAY_BE_OPEN_MPI,

    /* Open MPI makes the communicators of a process in the order of their parents' numbers, those
     * of MPI_Comm_idup and of other threads too. Ranks that begin with different ones may wait for
     * one another forever, unless all ranks are in a constructor before the first enters the MPI:
     * each needs an exchange. */
    NBC_CONSTRUCTORS_WAIT = NBC_MAY_BE_OPEN_MPI,

    /* Of each MPI_Comm_idup Open MPI makes a sequence of MPI_Iallreduce on the parent, and starts
     * the next one as soon as this rank finds the last one complete. If two are pending on one
     * parent, the ranks may interleave their sequences differently. So nbcshim begins the second
     * one when the first is over. Those of different parents do not disturb each other. */
    NBC_DUPLICATES_FOLLOW = NBC_MAY_BE_OPEN_MPI,
};

/* MPICH raises the errors of messages on MPI_COMM_WORLD. nbcshim defines the function by which it
 * does so (base/errors.c), unless the MPI was optimized as a whole, as Ubuntu's is, and calls its
 * own. MPI_Test and MPI_Wait, and no other call, raise them on the communicator of the message,
 * which is nbcshim's: then messages are tested one by one. Written at setup. */
#if defined MPICH_NUMVERSION && defined HAVE_MPI_GET_LIBRARY_VERSION && defined PIC && \
    !defined NBC_ABI
#define NBC_MAY_TEST_EACH 1
extern NBC_HIDDEN bool nbc_quirks_tests_each;
#else
#define NBC_MAY_TEST_EACH 0
enum { nbc_quirks_tests_each = false };
#endif

/* Whether the job goes on when a process fails, of which the MPI tells those that wait for its
 * messages (ULFM): mpiexec --with-ft ulfm of Open MPI, and MPICH's variable. Local. */
bool nbc_quirks_tolerates_faults(void);

/* The request of a message that is complete when MPI_Isend returns, where the MPI has one for all
 * of them, which nobody need complete or free; or MPI_REQUEST_NULL. Written at setup. */
extern NBC_HIDDEN MPI_Request nbc_quirks_complete_send;

/* comm: a communicator of this process alone. */
void nbc_quirks_setup(MPI_Comm comm);

/* The length of a message that was received, -1 if it is not known. The MPI's functions take longer
 * than to read it where the two families of MPIs keep it. */
static inline int64_t nbc_quirks_length(const MPI_Status *status)
{
#if defined MPICH_NUMVERSION && MPICH_NUMVERSION >= 30100000
    return (int64_t)((uint64_t)(unsigned)status->count_hi_and_cancelled >> 1 << 32 |
                     (unsigned)status->count_lo);
#elif defined OPEN_MPI
    return (int64_t)status->_ucount;
#else
    int length;
    NEXT(Get_count)((NBC_CONST MPI_Status *)status, MPI_BYTE, &length);
    return length >= 0 ? length : -1;
#endif
}

/* --- functions --------------------------------------------------------------------------------*/

/* The blocking collectives in which nbcshim replaces the MPI unless the user wants otherwise, a bit
 * for each of enum nbc_coll. MPICH before 4.3: all, since some of its own have faults (a
 * segmentation fault with MPI_Exscan_c), and most take longer. Intel MPI: MPI_Exscan, which refuses
 * a null receive buffer on rank 0, and MPI_Bcast, which crashes with some types that have gaps.
 * Local. */
uint32_t nbc_quirks_own_blocking(void);

/* The collectives of the MPI that are known to hang or to give wrong data, nonblocking or blocking
 * ones, a bit for each of enum nbc_coll: doc/mpis.md. Local. */
uint32_t nbc_quirks_wrong(bool blocking);

/* Returns the number behind a word of the text in which the MPI tells its version, 0 if there is
 * none, and -1 without the word. Only if the MPI has MPI_Get_library_version. Local. */
int nbc_quirks_version(const char *word);

/* Returns the major version of Open MPI, 0 of another MPI. Only in libraries for Open MPI and for
 * the ABI of MPI-5. Without the lock. Local. */
int nbc_quirks_open_mpi_version(void);

/* MPI_Topo_test, and MPI_Comm_get_parent: SMPI 3.32 ends the program in them. It has only Cartesian
 * topologies, and cannot start processes. Local. */
int nbc_quirks_topo_test(MPI_Comm comm, int *kind);
int nbc_quirks_parent(MPI_Comm *parent);

/* Sets the environment variables that the MPI below reads at its initialization. To be called
 * before that, in a process in which nbcshim may become active. Without the lock. Local. */
void nbc_quirks_before_init(void);

/* Open MPI 5 gives the processes of MPI_Comm_spawn none of the environment variables that its
 * launcher has set for their parents (-x), LD_PRELOAD among them; earlier versions give all.
 * Without nbcshim there, the parents would wait for them forever.
 *
 * Returns info, or what must be passed to MPI_Comm_spawn instead, to be freed by nbc_quirks_forget.
 * Without the lock, by the rank on which info is significant. */
MPI_Info nbc_quirks_spawn_info(MPI_Info info);
void nbc_quirks_forget(MPI_Info passed, MPI_Info info);

/* Returns the source of a persistent receive that all completion calls of the MPI below take for
 * inactive until it is started: MPI_PROC_NULL, with which a request needs the least memory (on Open
 * MPI 4.1 180 instead of 770 bytes), unless this MPI takes such a request for a complete one, as
 * Intel MPI does; else rank 0. comm: a communicator of this process alone. Under the lock. Local.
 */
int nbc_quirks_inactive_source(MPI_Comm comm);

/* The datatype to be sent in the place of a predefined one whose elements have gaps: one made of
 * it, which the caller frees, or the same. MPICH 4.0 with the device ch4:ofi, as in Ubuntu 22.04,
 * has a segmentation fault in each send of a few elements of MPI_DOUBLE_INT and its kin. Local. */
MPI_Datatype nbc_quirks_sent(MPI_Datatype predefined);

/* MPI_Reduce_local, which in Open MPI 5 uses MPI_COMM_SELF and crashes while that does not exist:
 * in a program that only opens sessions. `world`: whether MPI_COMM_SELF exists. Local. */
int nbc_quirks_reduce_local(const void *in, void *inout, int n, MPI_Datatype type, MPI_Op op,
                            bool world);

/* Ends the job by an error of a class of the standard, whose number is its status as if the MPI had
 * found the error, and says the text in the MPI's message, else in a line of its own. handler: a
 * fatal one, that of comm. Without the lock. */
void nbc_quirks_raise_fatal(MPI_Comm comm, MPI_Errhandler handler, int class, const char *text);

/* Between the two, errors of calls without a communicator reach no handler of the program: they are
 * raised on MPI_COMM_WORLD or MPI_COMM_SELF, which must exist. */
extern NBC_HIDDEN pthread_mutex_t nbc_quirks_handlers; /* held meanwhile */
void nbc_quirks_mute(MPI_Errhandler kept[2]);
void nbc_quirks_unmute(MPI_Errhandler kept[2]);

#endif
