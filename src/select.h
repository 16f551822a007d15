/* SPDX-License-Identifier: MIT */
/* Which algorithm runs: an override, else the tuning rules, else the first row that applies. A pure
 * function of arguments that are the same on every rank. */
#ifndef NBC_SELECT_H
#define NBC_SELECT_H

#include "sched.h"

/* What an algorithm asks of a call. All are the same on every rank. */
enum nbc_needs {
    NBC_ANY = 0,
    NBC_COMMUTATIVE = 1 << 0,   /* the operation */
    NBC_POW2 = 1 << 1,          /* number of ranks is a power of two */
    NBC_EVEN = 1 << 2,          /* number of ranks is even */
    NBC_INTER = 1 << 3,         /* intercommunicators only (without it: intracommunicators only); */
                                /* there the number of ranks is that of both groups together */
    NBC_NODES = 1 << 4,         /* a node map with more than one node */
    NBC_MULTI = 1 << 5,         /* more than one rank */
    NBC_EQUAL = 1 << 6,         /* a node map with equal blocks of neighboring ranks */
    NBC_LOCAL = 1 << 7,         /* all ranks share a node */
    NBC_SPREAD = 1 << 8,        /* not all of them do, or it is not known */
    NBC_OVERSUBSCRIBED = 1 << 9 /* they do, and it has fewer processors than ranks in all */
};

typedef struct nbc_sched *nbc_builder(const struct nbc_shape *shape);

struct nbc_alg {
    enum nbc_coll coll;
    const char *name;
    unsigned needs;
    nbc_builder *build;
    const char *purpose;
};

/* The builders of all rows. */
#define ALG(coll, name, needs, builder, purpose) nbc_builder nbc_##builder;
#include "algs.def"
#undef ALG

/* All rows of algs.def, in its order: rows of one collective are neighbors. */
extern const struct nbc_alg nbc_algs[];
extern const int nbc_nalgs;

/* A former name of an algorithm or of a word of the tuning rules, and its present one. */
struct nbc_alias {
    const char *former, *name;
};

/* All rows of aliases.def; the last has former = NULL. */
extern const struct nbc_alias nbc_aliases[];

/* The row of that name, or of which that is a former name (aliases.def); NULL if there is none. */
const struct nbc_alg *nbc_alg_by_name(enum nbc_coll coll, const char *name);

/* Whether its needs are met. */
bool nbc_alg_applies(const struct nbc_alg *alg, const struct nbc_shape *shape);

/* One line of a tuning table: for a number of ranks (of an intercommunicator: of both groups
 * together) in [min_size, max_size] and shape bytes in [min_bytes, max_bytes] (calls whose bytes
 * are not known match only rules from 0 to INT64_MAX). */
struct nbc_rule {
    enum nbc_coll coll;
    int min_size, max_size;
    int64_t min_bytes, max_bytes;
    const struct nbc_alg *alg;
    int64_t segment; /* 0: the algorithm's own choice */
    unsigned needs;  /* of the call, besides those of the algorithm */
};

struct nbc_rules {
    const struct nbc_rule *rule;
    int nrules;
    bool sorted; /* by collective, in the order of enum nbc_coll: fewer need be looked at */
};

/* The built-in tuning table. */
extern const struct nbc_rules nbc_default_rules;

/* The first rule that matches and whose algorithm applies, or NULL. rules may be NULL. */
const struct nbc_rule *nbc_rule_find(const struct nbc_shape *shape, const struct nbc_rules *rules);

/* The algorithm for a call: `override` where it applies (may be NULL), else the first rule that
 * matches and whose algorithm applies, else the first row that applies. Never NULL: every
 * collective has a row that applies to every call it can be made with. *segment is set to the
 * rule's where a rule decided, else 0. */
const struct nbc_alg *nbc_select(const struct nbc_shape *shape, const struct nbc_alg *override,
                                 const struct nbc_rules *rules, int64_t *segment);

#endif
