/* SPDX-License-Identifier: MIT */
/* MPI_Type_free and MPI_Op_free: a datatype or operator that operations still need is freed after
 * the last of them. */
#include "base/lock.h"
#include "below/export.h"
#include "op/types.h"

NBC_ARCHIVE_MEMBER(free)

/* Takes the lock, unless this thread has it, as in an operator of the program. Inside a call of the
 * MPI, which runs attribute callbacks of the program in file calls, another thread may hold the
 * lock and wait for one that the MPI holds here: then only if it is free. Returns whether it has
 * taken the lock. */
static bool free_lock(void)
{
    if (nbc_inside == NBC_BELOW)
        return nbc_lock_if_free();
    bool outside = nbc_inside == NBC_OUTSIDE;
    if (outside)
        nbc_lock();
    return outside;
}

EXPORT(int, Type_free, (MPI_Datatype * type), (type))
{
    if (!nbc_types_any())
        return NEXT(Type_free)(type);
    if (!nbc_inside)
        nbc_types_reclaim(); /* mutants: leave a call out: types go with a later call */
    bool locked = free_lock();
    bool later = nbc_datatype_put_off(type);
    if (locked)
        nbc_unlock();
    return later ? MPI_SUCCESS : NEXT(Type_free)(type);
}

EXPORT(int, Op_free, (MPI_Op * op), (op))
{
    if (!nbc_types_any())
        return NEXT(Op_free)(op);
    bool locked = free_lock();
    bool later = nbc_operator_put_off(op);
    if (locked)
        nbc_unlock();
    return later ? MPI_SUCCESS : NEXT(Op_free)(op);
}
