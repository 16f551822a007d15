/* SPDX-License-Identifier: MIT */
#include "op/types.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/errors.h"
#include "base/lock.h"
#include "base/state.h"
#include "below/quirks.h"

uint64_t nbc_types_generation;

static struct nbc_datatype *datatypes; /* under the lock, like operators */
static struct nbc_operator *operators;

/* What the program has freed: a datatype or an operator while another thread had the lock, or a
 * datatype that operations used then. */
struct nbc_left {
    MPI_Datatype type;
    MPI_Op op;
    struct nbc_left *next;
};
struct nbc_left *nbc_types_left;

static int64_t type_size(MPI_Datatype type)
{
#ifdef HAVE_MPI_TYPE_SIZE_X
    MPI_Count size;
    NEXT(Type_size_x)(type, &size);
#else
    int size;
    NEXT(Type_size)(type, &size); /* mutants: leave a call out: for an MPI-2.2 */
#endif
    return size;
}

static void type_extents(MPI_Datatype type, struct nbc_type *layout)
{
#if defined(HAVE_MPI_TYPE_GET_EXTENT_X) && defined(HAVE_MPI_TYPE_GET_TRUE_EXTENT_X)
    MPI_Count lb, extent, true_lb, true_extent;
    NEXT(Type_get_extent_x)(type, &lb, &extent);
    NEXT(Type_get_true_extent_x)(type, &true_lb, &true_extent);
#else
    MPI_Aint lb, extent, true_lb, true_extent;
    NEXT(Type_get_extent)(type, &lb, &extent); /* mutants: leave a call out: for an MPI-2.2 */
    /* mutants: leave a call out: for an MPI-2.2 */
    NEXT(Type_get_true_extent)(type, &true_lb, &true_extent);
#endif
    layout->extent = extent;
    layout->true_lb = true_lb;
    layout->true_extent = true_extent;
}

/* The envelope of a datatype: how it was created. */
struct envelope {
    int ints, addresses, types, combiner;
    bool large; /* created with MPI_Count counts: MPI_Type_get_contents rejects such a type */
};

static struct envelope envelope_of(MPI_Datatype type)
{
    struct envelope e = {.large = false};
#ifdef HAVE_MPI_TYPE_GET_ENVELOPE_C
    MPI_Count ints, addresses, counts, types;
    NEXT(Type_get_envelope_c)(type, &ints, &addresses, &counts, &types, &e.combiner);
    e.ints = (int)ints;
    e.addresses = (int)addresses;
    e.types = (int)types;
    e.large = counts > 0; /* mutants: >= for >: for speed */
#else
    /* mutants: leave a call out: for an MPI-2.2 */
    NEXT(Type_get_envelope)(type, &e.ints, &e.addresses, &e.types, &e.combiner);
#endif
    return e;
}

/* MPI-4.1: the datatype of a value and its index. */
#ifdef HAVE_MPI_TYPE_GET_VALUE_INDEX
enum { VALUE_INDEX = MPI_COMBINER_VALUE_INDEX };
#else
enum { VALUE_INDEX = MPI_COMBINER_NAMED };
#endif

/* The datatypes of Fortran's kinds have a combiner, but are predefined too: they are never
 * freed. */
static bool is_predefined(struct envelope e)
{
    return e.combiner == MPI_COMBINER_NAMED || e.combiner == MPI_COMBINER_F90_INTEGER ||
           e.combiner == MPI_COMBINER_F90_REAL || e.combiner == MPI_COMBINER_F90_COMPLEX ||
           e.combiner == VALUE_INDEX;
}

static bool is_named(MPI_Datatype type)
{
    return is_predefined(envelope_of(type));
}

/* Whether the elements lie in memory in the order of the type map, without gaps. Size and extent
 * alone do not show it: a struct may list its members backwards. Only the certain cases count:
 * predefined datatypes, and duplicates and contiguous sequences of packed datatypes. */
static bool is_packed(MPI_Datatype type, const struct nbc_type *layout)
{
    if (layout->size != layout->extent || layout->true_lb != 0 ||
        layout->true_extent != layout->size)
        return false;
    struct envelope e = envelope_of(type);
    if (is_predefined(e))
        return true;
    /* mutants: >= for >, || for &&: for speed */
    if ((e.combiner != MPI_COMBINER_DUP && e.combiner != MPI_COMBINER_CONTIGUOUS) || e.ints > 1 ||
        e.large)
        return false;
    nbc_assert(e.ints <= 1 && e.addresses == 0 && e.types == 1); /* no room for more */
    int count;
    MPI_Aint address;
    MPI_Datatype base;
    NEXT(Type_get_contents)(type, e.ints, e.addresses, e.types, &count, &address, &base);
    struct nbc_type below = {.size = type_size(base)};
    type_extents(base, &below); /* mutants: leave a call out: for speed */
    bool packed = is_packed(base, &below);
    if (!is_named(base))
        NEXT(Type_free)(&base);
    return packed;
}

/* The kinds of numbers that kernels know, in several sizes. */
enum kind { SIGNED, UNSIGNED, REAL };

static enum nbc_number number_of_size(enum kind kind, int64_t size)
{
    const enum nbc_number numbers[][3] = {
        {NBC_NUMBER_I8, NBC_NUMBER_U8, NBC_NUMBER_NONE},
        {NBC_NUMBER_I16, NBC_NUMBER_U16, NBC_NUMBER_NONE},
        {NBC_NUMBER_I32, NBC_NUMBER_U32, NBC_NUMBER_F32},
        {NBC_NUMBER_I64, NBC_NUMBER_U64, NBC_NUMBER_F64},
    };
    for (int i = 0; i < 4; i++)
        if (size == 1 << i)
            return numbers[i][kind];
    return NBC_NUMBER_NONE;
}

/* The sizes of Fortran's types depend on the compiler. */
static enum nbc_number number_of(MPI_Datatype type, int64_t size)
{
    const struct {
        MPI_Datatype type;
        enum kind kind;
    } known[] = {
        {MPI_DOUBLE, REAL},
        {MPI_FLOAT, REAL},
        {MPI_CHAR, CHAR_MIN < 0 ? SIGNED : UNSIGNED}, /* not in the standard, but MPIs take it */
        {MPI_SIGNED_CHAR, SIGNED},
        {MPI_UNSIGNED_CHAR, UNSIGNED},
        {MPI_SHORT, SIGNED},
        {MPI_UNSIGNED_SHORT, UNSIGNED},
        {MPI_INT, SIGNED},
        {MPI_UNSIGNED, UNSIGNED},
        {MPI_LONG, SIGNED},
        {MPI_UNSIGNED_LONG, UNSIGNED},
        {MPI_LONG_LONG, SIGNED},
        {MPI_UNSIGNED_LONG_LONG, UNSIGNED},
        {MPI_INT8_T, SIGNED},
        {MPI_UINT8_T, UNSIGNED},
        {MPI_INT16_T, SIGNED},
        {MPI_UINT16_T, UNSIGNED},
        {MPI_INT32_T, SIGNED},
        {MPI_UINT32_T, UNSIGNED},
        {MPI_INT64_T, SIGNED},
        {MPI_UINT64_T, UNSIGNED},
        {MPI_AINT, SIGNED},
        {MPI_OFFSET, SIGNED},
#ifdef MPI_COUNT
        {MPI_COUNT, SIGNED},
#endif
        {MPI_INTEGER, SIGNED},
        {MPI_REAL, REAL},
        {MPI_DOUBLE_PRECISION, REAL},
#ifdef MPI_INTEGER1
        {MPI_INTEGER1, SIGNED},
#endif
#ifdef MPI_INTEGER2
        {MPI_INTEGER2, SIGNED},
#endif
#ifdef MPI_INTEGER4
        {MPI_INTEGER4, SIGNED},
#endif
#ifdef MPI_INTEGER8
        {MPI_INTEGER8, SIGNED},
#endif
#ifdef MPI_REAL4
        {MPI_REAL4, REAL},
#endif
#ifdef MPI_REAL8
        {MPI_REAL8, REAL},
#endif
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].type == type)
            return number_of_size(known[i].kind, size);
    return NBC_NUMBER_NONE;
}

/* Asks the MPI, by packing no elements. (Functions without a communicator raise their errors on
 * MPI_COMM_WORLD, and MPICH lets a send to MPI_PROC_NULL pass with any datatype.) */
static bool is_committed(MPI_Datatype type)
{
    char none[8] = {0};
    int position = 0;
    if (nbc_self_comm == MPI_COMM_NULL)
        return true;
    int error = NEXT(Pack)(none, 0, type, none, sizeof none, &position, nbc_self_comm);
    return !error || !nbc_error_is_of(error, MPI_ERR_TYPE);
}

bool nbc_is_relative(const struct nbc_type *layout)
{
    enum { UNMAPPED = 4096 };
    return layout->size > 0 && layout->true_lb >= 0 && layout->true_lb < UNMAPPED;
}

static struct nbc_datatype *new_datatype(MPI_Datatype type)
{
    struct nbc_datatype *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->handle = type;
    t->named = is_named(type);
    t->layout.size = type_size(type);
    t->number = number_of(type, t->layout.size);
    type_extents(type, &t->layout);
    t->layout.packed = is_packed(type, &t->layout);
    t->relative = nbc_is_relative(&t->layout);
    t->sent = t->named && !t->layout.packed ? nbc_quirks_sent(type) : type;
    HASH_ADD(hh, datatypes, handle, sizeof type, t);
    if (nbc_added(t))
        return t;
    free(t);
    return NULL;
}

/* A type that is refused is not remembered: the program may commit it later. */
int nbc_datatype_find(MPI_Datatype type, struct nbc_datatype **entry)
{
    nbc_assert_locked();
    HASH_FIND(hh, datatypes, &type, sizeof type, *entry);
    if (*entry)
        return MPI_SUCCESS;
    if (type == MPI_DATATYPE_NULL || !is_committed(type))
        return MPI_ERR_TYPE;
    *entry = new_datatype(type);
    return *entry ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

/* Sets the runs of ones in `bytes`. Returns their number; `runs` may be NULL. */
static int find_runs(const unsigned char *bytes, const struct nbc_type *layout,
                     struct nbc_bytes_run *runs)
{
    const unsigned char *end = bytes + layout->true_extent, *p = bytes, *stop;
    int n = 0;
    while (p < end && (p = memchr(p, 0xff, (size_t)(end - p)))) {
        stop = memchr(p, 0, (size_t)(end - p));
        stop = stop ? stop : end;
        if (runs)
            runs[n] = (struct nbc_bytes_run){layout->true_lb + (p - bytes), stop - p};
        n++;
        p = stop;
    }
    return n;
}

/* Unpacks bytes of ones over zeros. */
static bool mark_data(struct nbc_datatype *t, MPI_Comm comm, unsigned char *bytes)
{
    int size = (int)t->layout.size, position = 0;
    void *ones = malloc((size_t)size + 1);
    if (!ones || t->layout.size > INT_MAX) {
        free(ones);
        return false;
    }
    memset(ones, 0xff, (size_t)size);
    void *element = (void *)((uintptr_t)bytes - (uintptr_t)t->layout.true_lb);
    int error = NEXT(Unpack)(ones, size, &position, element, 1, t->handle, comm);
    free(ones);
    return !error;
}

const struct nbc_bytes_run *nbc_datatype_runs(struct nbc_datatype *t, MPI_Comm comm, int *n)
{
    unsigned char *bytes = t->runs ? NULL : calloc(1, (size_t)t->layout.true_extent + 1);
    if (bytes && mark_data(t, comm, bytes)) {
        t->nruns = find_runs(bytes, &t->layout, NULL);
        t->runs = malloc((size_t)(t->nruns + 1) * sizeof *t->runs);
        if (t->runs)
            find_runs(bytes, &t->layout, t->runs);
    }
    free(bytes);
    *n = t->nruns;
    return t->runs;
}

static void datatype_forget(struct nbc_datatype *t)
{
    HASH_DEL(datatypes, t);
    nbc_types_generation++;
    free(t->runs);
    free(t);
}

void nbc_types_cleanup(void)
{
    struct nbc_datatype *t, *next;
    HASH_ITER (hh, datatypes, t, next) {
        if (t->sent == t->handle)
            continue;
        NEXT(Type_free)(&t->sent);
        datatype_forget(t);
    }
}

/* For nbc_types_reclaim; *type or *op is null, and then both are. */
static bool leave(MPI_Datatype *type, MPI_Op *op)
{
    bool none = *type == MPI_DATATYPE_NULL && *op == MPI_OP_NULL;
    struct nbc_left *l = none ? NULL : malloc(sizeof *l);
    if (!l)
        return false; /* unreached: no memory */
    *l = (struct nbc_left){.type = *type, .op = *op};
    *type = MPI_DATATYPE_NULL;
    *op = MPI_OP_NULL;
    NBC_LEAVE(nbc_types_left, l);
    return true;
}

static __attribute__((noinline)) void datatype_leave(struct nbc_datatype *t)
{
    for (MPI_Datatype handle; t->frees > 0; t->frees--) {
        handle = t->handle;
        leave(&handle, &(MPI_Op){MPI_OP_NULL});
    }
    datatype_forget(t);
}

void nbc_datatype_release(struct nbc_datatype *t)
{
    nbc_assert_locked();
    if (--t->uses == 0 && t->frees > 0)
        datatype_leave(t);
}

/* Frees it, or lets the last operation that uses it do so. */
static void left_free(struct nbc_left *l)
{
    bool is_type = l->type != MPI_DATATYPE_NULL;
    nbc_lock();
    bool later = is_type ? nbc_datatype_put_off(&l->type) : nbc_operator_put_off(&l->op);
    nbc_unlock();
    if (!later && is_type)
        NEXT(Type_free)(&l->type);
    else if (!later)
        NEXT(Op_free)(&l->op);
    free(l);
}

void nbc_types_reclaim_slow(void)
{
    struct nbc_left *l = NBC_TAKE(nbc_types_left), *later;
    for (; l; l = later) {
        later = l->next;
        left_free(l);
    }
}

/* The predefined operators, and what they are to the kernels. */
/* clang-format off */
#define OPERATORS(X) \
    X(MAX, MAX) X(MIN, MIN) X(SUM, SUM) X(PROD, PROD) X(LAND, NONE) X(BAND, AND) X(LOR, NONE) \
    X(BOR, OR) X(LXOR, NONE) X(BXOR, XOR) X(MINLOC, NONE) X(MAXLOC, NONE) X(REPLACE, NONE) \
    OPERATOR_WITHOUT_EFFECT(X)
/* clang-format on */
#ifdef MPI_NO_OP
#define OPERATOR_WITHOUT_EFFECT(X) X(NO_OP, NONE)
#else
#define OPERATOR_WITHOUT_EFFECT(X)
#endif

/* The number of a predefined operator, from 1; 0 for others. */
static int number_of_operator(MPI_Op op, enum nbc_arith *arith)
{
#define ROW(name, its_arith) {MPI_##name, NBC_ARITH_##its_arith},
    const struct {
        MPI_Op op;
        enum nbc_arith arith;
    } known[] = {OPERATORS(ROW)};
    *arith = NBC_ARITH_NONE;
    for (int i = 0; i < (int)(sizeof known / sizeof *known); i++)
        if (op == known[i].op) {
            *arith = known[i].arith;
            return i + 1;
        }
    return 0;
}

const char *nbc_operator_name(int number)
{
#define NAME(name, arith) "MPI_" #name,
    static const char *const names[] = {OPERATORS(NAME)};
    return names[number - 1];
}

/* MPI-4.1 6.9.2: logical operators are for integers and logical values. MPICH accepts these two
 * with real types at the call, and aborts in the reduction; it carries out MPI_LXOR. */
static bool is_logical_on_real(MPI_Op op, MPI_Datatype type)
{
    return (op == MPI_LAND || op == MPI_LOR) &&
           (type == MPI_FLOAT || type == MPI_DOUBLE || type == MPI_LONG_DOUBLE);
}

/* Asks the MPI, by a reduction of no elements. (MPI_Reduce_local would raise its error on
 * MPI_COMM_WORLD.) */
static bool operator_is_accepted(MPI_Op op, MPI_Datatype type)
{
    int in = 0, out = 0;
    return nbc_self_comm == MPI_COMM_NULL ||
           !NEXT(Allreduce)(&in, &out, 0, type, op, nbc_self_comm);
}

int nbc_operator_check(struct nbc_operator *o, const struct nbc_datatype *t)
{
    if (!o->named || o->checked == t->handle)
        return MPI_SUCCESS;
    if (is_logical_on_real(o->handle, t->handle) || !operator_is_accepted(o->handle, t->handle))
        return MPI_ERR_OP;
    if (t->named)
        o->checked = t->handle;
    return MPI_SUCCESS;
}

static struct nbc_operator *new_operator(MPI_Op op, int named, enum nbc_arith arith)
{
    int commutative = true;
    struct nbc_operator *o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    if (!named) /* MPICH 3.4.1 ends the program if it is asked about MPI_NO_OP */
        NEXT(Op_commutative)(op, &commutative);
    o->handle = op;
    o->commutative = commutative;
    o->named = named;
    o->arith = arith;
    o->checked = MPI_DATATYPE_NULL;
    HASH_ADD(hh, operators, handle, sizeof op, o);
    if (nbc_added(o))
        return o;
    free(o);
    return NULL;
}

/* An operator of the program works on any datatype. */
int nbc_operator_find(MPI_Op op, struct nbc_operator **entry)
{
    nbc_assert_locked();
    HASH_FIND(hh, operators, &op, sizeof op, *entry);
    if (*entry)
        return MPI_SUCCESS;
    enum nbc_arith arith;
    int named = number_of_operator(op, &arith);
    if (!op || op == MPI_OP_NULL || (!named && !operator_is_accepted(op, MPI_INT)))
        return MPI_ERR_OP;
    *entry = new_operator(op, named, arith);
    return *entry ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static void operator_forget(struct nbc_operator *o)
{
    HASH_DEL(operators, o);
    nbc_types_generation++;
    free(o);
}

void nbc_operator_release(struct nbc_operator *o)
{
    if (--o->uses > 0 || !o->freed)
        return;
    MPI_Op op = o->handle;
    operator_forget(o);
    NEXT(Op_free)(&op);
}

bool nbc_datatype_put_off(MPI_Datatype *type)
{
    struct nbc_datatype *t;
    if (!nbc_has_lock())
        return leave(type, &(MPI_Op){MPI_OP_NULL});
    HASH_FIND(hh, datatypes, type, sizeof *type, t);
    if (!t || t->named)
        return false;
    if (t->uses == 0) {
        datatype_forget(t);
        return false;
    }
    t->frees++;
    *type = MPI_DATATYPE_NULL;
    return true;
}

bool nbc_operator_put_off(MPI_Op *op)
{
    struct nbc_operator *o;
    if (!nbc_has_lock())
        return leave(&(MPI_Datatype){MPI_DATATYPE_NULL}, op);
    HASH_FIND(hh, operators, op, sizeof *op, o);
    if (!o || o->named)
        return false;
    if (o->uses == 0) {
        operator_forget(o);
        return false;
    }
    o->freed = true;
    *op = MPI_OP_NULL;
    return true;
}

bool nbc_types_any(void)
{
    return datatypes || operators;
}
