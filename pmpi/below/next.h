/* SPDX-License-Identifier: MIT */
/* The MPI below: the shim makes every MPI call through NEXT().
 *
 * In the shared library NEXT() reads a table that dlsym(RTLD_NEXT, "PMPI_...") has filled: the shim
 * exports the PMPI_ names itself, so a plain call of PMPI_Wait would return to the shim. The static
 * library exports no PMPI_ name, and NEXT() is the plain PMPI_ call. */
#ifndef NBC_NEXT_H
#define NBC_NEXT_H

#include "config.h"

#include <mpi.h>
#include <stdbool.h>

/* Programs call what the MPI declares deprecated, so nbcshim has to know it. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* NBC_IF(HAVE_MPI_X, code): the code, if config.h defines this name as 1. */
#define NBC_HAS_1 ,
#define NBC_IF(have, ...) NBC_IF_NAMED(have, __VA_ARGS__)
#define NBC_IF_NAMED(have, ...) NBC_IF_CHOSEN(NBC_HAS_##have NBC_YES, NBC_NO, )(__VA_ARGS__)
#define NBC_IF_CHOSEN(...) NBC_IF_SECOND(__VA_ARGS__)
#define NBC_IF_SECOND(first, second, ...) second
#define NBC_YES(...) __VA_ARGS__
#define NBC_NO(...)

/* SMPI simulates the ranks of an MPI within one process, in virtual time: configure finds out.
 *
 * Each rank has its own copy of the program, and so of nbcshim, which is linked statically. All
 * ranks run in turns in one thread of the system. A rank gives its turn away only in calls of MPI:
 * a yield of the processor has no effect. A poll takes virtual time, so a loop of polls takes
 * longer than the wait for what it polls.
 *
 * NBC_PER_THREAD: the storage of what each thread of a rank has for itself. A simulated rank has no
 * threads, and the linker has room for the thread-local variables of only some hundred libraries.
 */
#ifdef NBC_SIMULATED
enum { NBC_IS_SIMULATED = 1 };
#define NBC_PER_THREAD
#else
enum { NBC_IS_SIMULATED = 0 };
#define NBC_PER_THREAD _Thread_local __attribute__((tls_model("initial-exec")))
#endif

/* In the declaration of a variable that no other object uses: it is accessed without the table of
 * addresses that another could have. */
#define NBC_HIDDEN __attribute__((visibility("hidden")))

/* The static library declares this type too, although it does not use it: libtool compiles each
 * file twice, the shared object first, and make reads the list of included files of the second
 * compilation. */
struct nbc_next {
#define FN(name) __typeof__(MPI_##name) *name;
#include "below/next.def"
#undef FN
};

#ifdef NBC_PROFILE
/* libnbcprofile.so calls the PMPI_ functions of nbcshim or the MPI, whichever is next. Without one
 * the MPI lacks it: says so, and ends the program, as the dynamic linker would. */
void (*nbc_profile_next(const char *name))(void);

#define NEXT(name)                                                    \
    __extension__({                                                   \
        static __typeof__(MPI_##name) *next;                          \
        if (!next)                                                    \
            next = (__typeof__(MPI_##name) *)nbc_profile_next(#name); \
        next;                                                         \
    })
#elif defined PIC
/* Written when the library is loaded, or earlier by nbc_next_resolve; afterwards only read. */
extern NBC_HIDDEN struct nbc_next nbc_next;
extern bool nbc_next_resolved;

#define NEXT(name) (nbc_next.name)
#else
#define NEXT(name) PMPI_##name
#endif

/* From now on calls `enter` at the beginning of each call of the program, and `leave` at its end.
 */
void nbc_next_observe(void (*enter)(void), void (*leave)(void), bool (*within)(void));

/* Fills the table and finds tools. May be called any number of times. The constructor of the
 * library calls it, and so does each function through which a program can enter MPI for the first
 * time: the constructors of other libraries may run first. Without the lock. */
void nbc_next_resolve_now(void);

static inline void nbc_next_resolve(void)
{
#if defined PIC && !defined NBC_PROFILE
    if (!__atomic_load_n(&nbc_next_resolved, __ATOMIC_ACQUIRE))
        nbc_next_resolve_now(); /* unreached: empty in the static library */
#endif
}

/* The file of the MPI if the dynamic linker searches it before nbcshim, else NULL. The program's
 * calls of functions that the MPI has then bypass nbcshim, MPI_Init among them. Valid after
 * nbc_next_resolve. Always NULL in the static library. */
extern const char *nbc_next_mpi_in_front;

/* After a line, before a process ends that its launcher may not expect to end: Hydra loses what it
 * has not read by then (2 lines of 30). */
void nbc_next_let_launcher_read(void);

/* The function of the MPI below with this name, given without prefix ("Iallreduce"); NULL if the
 * MPI lacks the function. For the functions that the shim replaces: while the shim is inactive, it
 * passes their calls on. Only in the shared library: the static one calls them by name. */
void (*nbc_next_find(const char *name))(void);

/* Declares `function`, such a one, in either library: for rows of collectives.def, with PERHAPS. */
#ifdef PIC
#define NBC_FIND_BELOW(name)                 \
    static __typeof__(MPI_##name) *function; \
    if (!function)                           \
    function = (__typeof__(MPI_##name) *)nbc_next_find(#name)
#else
#define NBC_FIND_BELOW(name)                           \
    extern __typeof__(MPI_##name) PMPI_##name PERHAPS; \
    __typeof__(MPI_##name) *function = PMPI_##name
#endif

/* The name, without prefix, of the function of MPI whose body in the shim begins at the address;
 * NULL if there is none. */
const char *nbc_next_wrapper(const void *start);

/* The object with this symbol, given whole, in any library but that of another MPI, which the
 * process may have too: after the shim, or, in a program that is linked statically, where RTLD_NEXT
 * finds nothing, the first one. NULL if there is none. */
void *nbc_next_object(const char *symbol);

/* That with this symbol in a library that is loaded, or in one that this depends on. */
void *nbc_next_in(const char *path, const char *symbol);

/* The function with this symbol, found as nbc_next_object does. */
void (*nbc_next_function(const char *symbol))(void);

/* The function with this symbol, given whole, that comes after the shim; NULL if there is none. An
 * MPI that was loaded with dlopen does not come after it: then the symbol as the object sees it
 * from which the shim was called, `caller` being an address there. Only in the shared library. */
void (*nbc_next_symbol(const char *symbol, const void *caller))(void);

/* The same, looked for once: *kept is NULL at first. */
void (*nbc_next_kept(void (**kept)(void), const char *symbol, const void *caller))(void);

#endif
