/* SPDX-License-Identifier: MIT */
/* MPI_Type_free and MPI_Op_free: a datatype or operator that operations still need is freed after
 * the last of them. */
#include <sched.h>

#include "base/lock.h"
#include "below/export.h"
#include "op/types.h"

NBC_ARCHIVE_MEMBER(free)

/* Takes the lock. Inside a call of the MPI, which runs attribute callbacks of the program in file
 * calls, another thread may hold the lock and wait for one that the MPI holds here: then this gives
 * up after a while. Returns whether it has taken the lock. */
static bool free_lock(unsigned char *before)
{
    enum { MOST = 100000 };
    *before = nbc_inside;
    if (nbc_inside != NBC_BELOW)
        return nbc_lock_outside();
    for (int i = 0; i < MOST; i++) {
        if (nbc_lock_nested(before))
            return true;
        sched_yield();
    }
    return false;
}

EXPORT(int, Type_free, (MPI_Datatype * type), (type))
{
    unsigned char before;
    if (!nbc_datatypes_any())
        return NEXT(Type_free)(type);
    if (!nbc_inside)
        nbc_types_reclaim();
    bool locked = free_lock(&before);
    bool later = nbc_inside == NBC_LOCKED && nbc_datatype_put_off(type);
    if (locked)
        nbc_unlock_nested(before);
    return later ? MPI_SUCCESS : NEXT(Type_free)(type);
}

EXPORT(int, Op_free, (MPI_Op * op), (op))
{
    unsigned char before;
    if (!nbc_operators_any())
        return NEXT(Op_free)(op);
    bool locked = free_lock(&before);
    bool later = nbc_inside == NBC_LOCKED && nbc_operator_put_off(op);
    if (locked)
        nbc_unlock_nested(before);
    return later ? MPI_SUCCESS : NEXT(Op_free)(op);
}
