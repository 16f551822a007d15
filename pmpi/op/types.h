/* SPDX-License-Identifier: MIT */
/* The datatypes and reduction operators that operations have used. A program may free either right
 * after a call, while operations still need it. Then the handle becomes null, as the standard
 * requires, and the object itself is freed after the last operation that uses it. (A duplicate
 * would not do: operators of the program are called with the handle of the datatype, and may
 * compare it.) Under the lock unless stated. Local. */
#ifndef NBC_TYPES_H
#define NBC_TYPES_H

#include "below/device.h"
#include "below/next.h"
#include "base/table.h"

#include "coll.h"
#include "kernel.h"

struct nbc_datatype {
    MPI_Datatype handle;
    MPI_Datatype sent; /* the handle, or what is sent in its place: nbc_quirks_sent */
    struct nbc_type layout;
    int uses;                   /* number of operations that hold it */
    bool named;                 /* predefined: never freed */
    bool relative;              /* see nbc_is_relative */
    struct nbc_bytes_run *runs; /* see nbc_datatype_runs; NULL: not yet known */
    int nruns;
    enum nbc_number number; /* the number type for the kernels, if they know it */
    int frees;              /* how often the program has freed the handle, of which it may have
                             * got several; as often with its last use */
    UT_hash_handle hh;
};

struct nbc_operator {
    MPI_Op handle;
    int uses;
    bool commutative;
    int named;            /* predefined: its number, from 1, the same on all ranks; else 0 */
    enum nbc_arith arith; /* for the kernels */
    bool freed;
    MPI_Datatype checked; /* the datatype for which it was last found valid */
    UT_hash_handle hh;
};

/* Forgets the predefined datatypes for which others are sent. To be called before the MPI ends. */
void nbc_types_cleanup(void);

/* Grows whenever an entry is removed: results derived from handles before may then be invalid. */
extern NBC_HIDDEN uint64_t nbc_types_generation;

/* The entry of a handle, created at its first use. Returns MPI_SUCCESS, MPI_ERR_NO_MEM, or
 * MPI_ERR_TYPE if the handle is not one of a committed datatype, MPI_ERR_OP if it is not one of an
 * operator. */
int nbc_datatype_find(MPI_Datatype type, struct nbc_datatype **entry);
int nbc_operator_find(MPI_Op op, struct nbc_operator **entry);

/* Whether the data of this layout begins where the buffer does, or so close that there can be none
 * if the buffer is NULL. */
bool nbc_is_relative(const struct nbc_type *layout);

/* The bytes of an element that hold data, in ascending order; NULL without memory. */
const struct nbc_bytes_run *nbc_datatype_runs(struct nbc_datatype *t, MPI_Comm comm, int *n);

/* Drop a reference of an operation, which has taken it by `uses`. */
void nbc_datatype_release(struct nbc_datatype *t);
void nbc_operator_release(struct nbc_operator *o);

/* Frees the datatypes that the program has freed and that no operation uses any more, and what was
 * left by threads without the lock. The MPI then runs attribute callbacks of the program, so:
 * without the lock, and only in threads of the program. */
extern NBC_HIDDEN struct nbc_left *nbc_types_left; /* NBC_LEAVE, NBC_TAKE */
void nbc_types_reclaim_slow(void);
static inline void nbc_types_reclaim(void)
{
    if (__builtin_expect(__atomic_load_n(&nbc_types_left, __ATOMIC_RELAXED) != NULL, 0))
        nbc_types_reclaim_slow();
}

/* The name of a predefined operator with this number. */
const char *nbc_operator_name(int number);

/* Whether the operator is valid for the datatype: MPI_SUCCESS or MPI_ERR_OP. Always valid if the
 * program has created the operator. */
int nbc_operator_check(struct nbc_operator *o, const struct nbc_datatype *t);

/* For MPI_Type_free and MPI_Op_free of the program. Returns true if operations use the object: the
 * handle is then null, and the object is freed later. Otherwise the caller frees it. Without the
 * lock, where the thread cannot have it, nbc_types_reclaim finds that out. */
bool nbc_datatype_put_off(MPI_Datatype *type);
bool nbc_operator_put_off(MPI_Op *op);

/* Whether there is any entry. Without the lock, by threads that free a datatype or operator. */
bool nbc_types_any(void);

#endif
