/* SPDX-License-Identifier: MIT */
/* Datatypes and reduction operators that the shim has met. A program may free either right after
 * a call, while operations still need them: then the handle is set to null as the standard wants,
 * and the object itself is freed behind its last operation. (A duplicate would not do: operators of
 * the user are called with the datatype's handle, and may know it.) All under the lock. */
#ifndef NBC_TYPES_H
#define NBC_TYPES_H

#include "below/next.h"
#include "base/table.h"

#include "coll.h"
#include "kernel.h"

struct nbc_datatype {
    MPI_Datatype handle;
    struct nbc_type layout;
    int uses;                  /* operations that hold it */
    bool named;                /* predefined: never freed */
    enum nbc_number number;    /* for the kernels: what it is, if it is one of theirs */
    bool freed;                /* by the user; ends with the last use */
    struct nbc_datatype *next; /* among those that wait for nbc_types_reclaim */
    UT_hash_handle hh;
};

struct nbc_operator {
    MPI_Op handle;
    int uses;
    bool commutative;
    bool named;           /* predefined */
    enum nbc_arith arith; /* for the kernels */
    bool freed;
    MPI_Datatype checked; /* the type it was last found to work on */
    UT_hash_handle hh;
};

/* Grows whenever an entry goes: what was worked out from handles before may be wrong then. */
extern uint64_t nbc_types_generation;

/* Entry of a handle, made when first met. NULL: null handle, or out of memory. */
struct nbc_datatype *nbc_datatype_find(MPI_Datatype type);
struct nbc_operator *nbc_operator_find(MPI_Op op);

static inline void nbc_datatype_hold(struct nbc_datatype *t)
{
    t->uses++;
}

void nbc_datatype_release(struct nbc_datatype *t);

/* Frees the types that were freed while in use and are no more. The MPI runs attribute callbacks of
 * the program then: not under the lock, and only in threads of the program. */
extern struct nbc_datatype *nbc_types_dead;
void nbc_types_reclaim_slow(void);
static inline void nbc_types_reclaim(void)
{
    if (__builtin_expect(!!__atomic_load_n(&nbc_types_dead, __ATOMIC_RELAXED), 0))
        nbc_types_reclaim_slow();
}

static inline void nbc_operator_hold(struct nbc_operator *o)
{
    o->uses++;
}

void nbc_operator_release(struct nbc_operator *o);

/* Whether the MPI lets the operator work on the datatype: MPI_SUCCESS, or MPI_ERR_OP. Anything goes
 * with operators of the user. */
int nbc_operator_check(struct nbc_operator *o, const struct nbc_datatype *t);

/* MPI_Type_free and MPI_Op_free of the program: returns true when the object is in use. Then its
 * handle is null already, and the object is freed later. */
bool nbc_datatype_put_off(MPI_Datatype *type);
bool nbc_operator_put_off(MPI_Op *op);

/* Whether any has been met: may be asked without the lock by threads that free one. */
bool nbc_datatypes_any(void);
bool nbc_operators_any(void);

/* Elements at MPI_BOTTOM: MPICH refuses a null buffer in MPI_Pack and MPI_Unpack, so one element of
 * a type with other displacements stands for them, counted from where their data begins. Sets *made
 * when there is such a type, which the caller frees. */
int nbc_leave_bottom(const struct nbc_type *t, uintptr_t *addr, int *n, MPI_Datatype *type,
                     bool *made);

#endif
