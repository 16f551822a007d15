/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "below/detect.h"

#include "below/next.h"

#include <string.h>

#ifdef PIC
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "below/elf.h"

#include "coll.h"

/* The part of an object's dynamic section that names its undefined symbols. */
struct symbols {
    const ElfW(Dyn) * dynamic;
    const ElfW(Sym) * table;
    const char *strings;
    const uint32_t *gnu_hash, *hash;
};

static bool find_symbols(const struct dl_phdr_info *info, struct symbols *s)
{
    const ElfW(Dyn) *d = nbc_elf_dynamic(info);
    if (!d)
        return false;
    *s = (struct symbols){
        .dynamic = d,
        .table = nbc_elf_table(info, d, DT_SYMTAB),
        .strings = nbc_elf_table(info, d, DT_STRTAB),
        .gnu_hash = nbc_elf_table(info, d, DT_GNU_HASH),
        .hash = nbc_elf_table(info, d, DT_HASH),
    };
    return s->table && s->strings && (s->hash || s->gnu_hash);
}

/* Undefined symbols precede the first hashed one in the GNU table. The old-style table states the
 * number of all symbols. */
static uint32_t symbol_count(const struct symbols *s)
{
    if (s->hash)
        return s->hash[1];
    uint32_t first = s->gnu_hash[1];
    /* In an object without exports the linker writes 1 here, although symbols follow up to the
     * strings. */
    if (first <= 1 && (const char *)s->table < s->strings)
        /* unreached: older symbol tables */
        return (uint32_t)((s->strings - (const char *)s->table) / sizeof *s->table);
    return first;
}

enum { LACKS_LARGE = NBC_LARGE_UNKNOWN != 0 };
#ifdef HAVE_MPI_NEIGHBOR_ALLGATHER
enum { LACKS_NEIGHBORHOODS = 0 };
#else
enum { LACKS_NEIGHBORHOODS = 1 };
#endif

/* What objects reference: see nbc_program_wants_us and nbc_program_large. */
struct references {
    bool all; /* are looked for; else the first is enough */
    bool any;
    uint32_t large;
};

/* Notes a name that may be that of a blocking collective which the MPI lacks. `end` is the rest of
 * the name after that of the collective: "_c", and the underscores of Fortran. */
static void note_blocking(enum nbc_coll coll, const char *end, struct references *r)
{
    bool large = strncmp(end, "_c", 2) == 0;
    end += large ? 2 : 0;
    if (end[strspn(end, "_")] != '\0')
        return;
    r->any |= large ? LACKS_LARGE : LACKS_NEIGHBORHOODS && nbc_coll_is_neighborhood(coll);
    if (large && LACKS_LARGE)
        r->large |= UINT32_C(1) << coll;
}

/* The same for a collective that makes a request, which no MPI-2 has. */
static void note_request(const char *end, struct references *r)
{
    r->any = true;
    if (LACKS_LARGE && strncmp(end, "_c", 2) == 0)
        r->large |= NBC_LARGE_REQUESTS;
}

/* The name after its prefix, NULL if it has none of these. Open MPI's extension uses MPIX_, and
 * MPICH's module pmpi_f08 uses pmpir_. */
static const char *after_prefix(const char *name)
{
    if (strncmp(name, "mpi_", 4) == 0)
        return name + 4;
    return strncmp(name, "mpix_", 5) == 0 || strncmp(name, "mpir_", 5) == 0 ? name + 5 : NULL;
}

/* Notes a symbol that may be a collective: MPI_Iallreduce, PMPI_Allreduce_init_c, mpi_iallreduce_,
 * mpi_allreduce_init_f08_, ... */
static void note_name(const char *name, struct references *r)
{
    char lower[64];
    size_t n = 0;
    if (*name == 'P' || *name == 'p')
        name++;
    for (; name[n] && n < sizeof lower - 1; n++)
        lower[n] = nbc_lower(name[n]);
    lower[n] = '\0';
    const char *rest = after_prefix(lower);
    if (!rest)
        return;
    for (int c = 0; c < NBC_NCOLLS; c++) {
        const char *coll = nbc_coll_name(c);
        size_t length = strlen(coll);
        if (*rest == 'i' && strncmp(rest + 1, coll, length) == 0)
            note_request(rest + 1 + length, r);
        else if (strncmp(rest, coll, length) != 0)
            continue;
        else if (strncmp(rest + length, "_init", 5) == 0)
            note_request(rest + length + 5, r);
        else
            note_blocking(c, rest + length, r);
    }
}

static void note_names(const struct symbols *s, struct references *r)
{
    uint32_t n = symbol_count(s);
    for (uint32_t i = 1; i < n && (r->all || !r->any); i++)
        if (s->table[i].st_shndx == SHN_UNDEF)
            note_name(s->strings + s->table[i].st_name, r);
}

/* Whether an object is this library. */
static bool is_own(const struct dl_phdr_info *info)
{
    static const char anchor = 0;
    return nbc_elf_has(info, (uintptr_t)&anchor);
}

static int inspect_object(struct dl_phdr_info *info, size_t size, void *to)
{
    (void)size;
    struct references *r = to;
    struct symbols s;
    if (!is_own(info) && !nbc_is_mpi(info->dlpi_name) && find_symbols(info, &s))
        note_names(&s, r);
    return r->any && !r->all;
}

bool nbc_program_wants_us(void)
{
    struct references r = {.any = false};
    dl_iterate_phdr(inspect_object, &r);
    return r.any;
}

uint32_t nbc_program_large(void)
{
    struct references r = {.all = true};
    if (LACKS_LARGE)
        dl_iterate_phdr(inspect_object, &r);
    return r.large;
}

/* --- dependencies ----------------------------------------------------------------------------- */

/* All handles and constants of the ABI of MPI-5 differ from those of the other libraries of the
 * same MPI. */
static bool is_other_kind(const char *path)
{
    bool abi = strncmp(nbc_base_name(path), "libmpi_abi.", 11) == 0;
#ifdef NBC_ABI
    return nbc_is_mpi(path) && !abi;
#else
    return abi;
#endif
}

/* Whether an object depends on one of the MPI's libraries on which another one depends. */
static bool needs_same(const struct symbols *one, const struct symbols *other)
{
    for (const ElfW(Dyn) *a = one->dynamic; a->d_tag != DT_NULL; a++) {
        const char *name = one->strings + a->d_un.d_val;
        if (a->d_tag != DT_NEEDED || !nbc_is_mpi(name) || is_other_kind(name))
            continue;
        for (const ElfW(Dyn) *b = other->dynamic; b->d_tag != DT_NULL; b++)
            if (b->d_tag == DT_NEEDED && strcmp(name, other->strings + b->d_un.d_val) == 0)
                return true;
    }
    return false;
}

static int find_own(struct dl_phdr_info *info, size_t size, void *own)
{
    (void)size;
    return is_own(info) && find_symbols(info, own);
}

/* A library of the other kind may need one of ours, to do its work. */
static int find_other(struct dl_phdr_info *info, size_t size, void *own)
{
    struct symbols s;
    (void)size;
    return !is_own(info) && !is_other_kind(info->dlpi_name) && find_symbols(info, &s) &&
           needs_same(&s, own);
}

/* Whether no object of this process but this library depends on the MPI for which this library was
 * built. */
static bool only_we_need_mpi(void)
{
    struct symbols own;
    return dl_iterate_phdr(find_own, &own) && !dl_iterate_phdr(find_other, &own);
}

static int find_needs_other(struct dl_phdr_info *info, size_t size, void *found)
{
    struct symbols s;
    (void)size;
    if (is_own(info) || nbc_is_mpi(info->dlpi_name) || !find_symbols(info, &s))
        return 0;
    for (const ElfW(Dyn) *d = s.dynamic; d->d_tag != DT_NULL; d++) {
        const char *name = s.strings + d->d_un.d_val;
        if (d->d_tag != DT_NEEDED || !is_other_kind(name))
            continue;
        /* unreached below: in a process that writes no counts */
        *(const char **)found = name;
        return 1;
    }
    return 0;
}

/* The name of an MPI library of the other kind that the program, or one of its libraries, depends
 * on; NULL if there is none. The kinds are that of the ABI of MPI-5, libmpi_abi, and all others. */
static const char *other_kind_needed(void)
{
    const char *found = NULL;
    dl_iterate_phdr(find_needs_other, &found);
    return found;
}

/* A name that MPIs of another family have, because their mpi.h refers to it: handles of Open MPI
 * are addresses, those of others numbers. The libraries of the ABI of MPI-5 are known by their
 * names. */
#ifdef NBC_ABI
static const char our_mpi[] = "the ABI of MPI-5", foreign[] = "";
#elif defined OPEN_MPI
static const char our_mpi[] = "Open MPI", foreign[] = "MPIR_Dup_fn";
#elif defined MPICH_VERSION
static const char our_mpi[] = "MPICH", foreign[] = "ompi_mpi_comm_world";
#else
static const char our_mpi[] = "another MPI than Open MPI", foreign[] = "ompi_mpi_comm_world";
#endif

/* The process also has the library for which the shim was built, as a dependency of the shim. Calls
 * of the program can go to either, by the order of dependencies. An MPI of another family does no
 * harm if the program does not use it: then the program depends on the MPI of the shim too. One
 * that was loaded with RTLD_LOCAL, to translate one kind into the other, is not found here. */
void nbc_require_its_mpi(void)
{
    Dl_info mpi, own;
    const char *used = other_kind_needed();
    const void *found = used ? NULL : dlsym(RTLD_NEXT, foreign);
    if (!used && found && dladdr(found, &mpi))
        used = mpi.dli_fname;
    if (!used || !only_we_need_mpi() || !dladdr(&nbc_next, &own))
        return;
    fprintf(stderr,
            "nbcshim: %s is built for %s, but the program uses %s: use the library that is "
            "built for that MPI\n",
            own.dli_fname, our_mpi, used);
    nbc_next_let_launcher_read();
    exit(EXIT_FAILURE);
}

/* --- another copy of the MPI ------------------------------------------------------------------ */

/* Paths of the MPI's libraries. */
struct paths {
    const char *path[16];
    size_t n;
};

static int collect_path(struct dl_phdr_info *info, size_t size, void *to)
{
    struct paths *paths = to;
    (void)size;
    if (nbc_is_mpi(info->dlpi_name))
        paths->path[paths->n++] = info->dlpi_name;
    return paths->n == sizeof paths->path / sizeof *paths->path;
}

static bool is_initialized(const char *path)
{
    int flag = 0, (*initialized)(int *);
    void *found = nbc_next_in(path, "PMPI_Initialized");
    memcpy(&initialized, &found, sizeof found);
    if (found)
        initialized(&flag);
    return flag;
}

bool nbc_mpi_is_initialized(void)
{
    struct paths paths = {.n = 0};
    bool any = false;
    dl_iterate_phdr(collect_path, &paths);
    for (size_t i = 0; i < paths.n && !any; i++)
        any = is_initialized(paths.path[i]);
    return any;
}
#else
bool nbc_program_wants_us(void)
{
    return true;
}

uint32_t nbc_program_large(void)
{
    return 0;
}

void nbc_require_its_mpi(void)
{
}
#endif
