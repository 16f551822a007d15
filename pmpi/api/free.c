/* SPDX-License-Identifier: MIT */
/* MPI_Type_free and MPI_Op_free: a datatype or operator that operations still need is freed after
 * the last of them. */
#include "base/lock.h"
#include "below/export.h"
#include "op/types.h"

NBC_ARCHIVE_MEMBER(free)

/* These calls do not wait for the lock, whose holder may be in an operator of the program that
 * waits for this thread: one in Python waits for the interpreter, which mpi4py keeps in such calls.
 * Nor may they in callbacks within a call of the MPI, for one of whose locks the holder waits. */

EXPORT(int, Type_free, (MPI_Datatype * type), (type))
{
    if (!nbc_types_any())
        return NEXT(Type_free)(type);
    bool locked = nbc_lock_if_free();
    bool later = nbc_datatype_put_off(type);
    if (locked)
        nbc_unlock();
    return later ? MPI_SUCCESS : NEXT(Type_free)(type);
}

EXPORT(int, Op_free, (MPI_Op * op), (op))
{
    if (!nbc_types_any())
        return NEXT(Op_free)(op);
    bool locked = nbc_lock_if_free();
    bool later = nbc_operator_put_off(op);
    if (locked)
        nbc_unlock();
    return later ? MPI_SUCCESS : NEXT(Op_free)(op);
}
