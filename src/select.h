/* SPDX-License-Identifier: MIT */
/* The selection of algorithms: an override, else the tuning rules, else the first row of algs.def
 * that applies. It is a pure function of arguments that are the same on every rank, so all ranks
 * select the same algorithm without communication. All functions are local. */
#ifndef NBC_SELECT_H
#define NBC_SELECT_H

#include "sched.h"

/* Preconditions of an algorithm or a rule: properties of a call that are the same on every rank. */
enum nbc_needs {
    NBC_ANY = 0,
    NBC_COMMUTATIVE = 1 << 0,    /* the operator is commutative */
    NBC_POW2 = 1 << 1,           /* the number of ranks is a power of two */
    NBC_EVEN = 1 << 2,           /* the number of ranks is even */
    NBC_INTER = 1 << 3,          /* an intercommunicator; without it an intracommunicator. In an */
                                 /* intercommunicator the ranks of both groups are counted */
    NBC_NODES = 1 << 4,          /* a node map with more than one node */
    NBC_MULTI = 1 << 5,          /* more than one rank */
    NBC_EQUAL = 1 << 6,          /* a node map with contiguous blocks of equal size */
    NBC_LOCAL = 1 << 7,          /* all ranks share a node */
    NBC_SPREAD = 1 << 8,         /* they do not, or that is unknown */
    NBC_OVERSUBSCRIBED = 1 << 9, /* they do, and more ranks are on it than processors */
    NBC_NOT_RANKS = 1 << 10,     /* no reduction in the order of ranks is required */
    NBC_NOT_TREE = 1 << 11,      /* no reduction in the order of a tree is required */
    NBC_RANKS = 1 << 12,         /* one in the order of ranks is required; for rules */
    NBC_TREE = 1 << 13,          /* one in the order of a tree is required; for rules */
    NBC_SOCKETS = 1 << 14,       /* not NBC_LOCAL, and no node has a network faster than sockets */
    NBC_BY_MPI = 1 << 15,     /* the MPI below may carry out the call itself: the row mpi, which */
                              /* has no schedule */
    NBC_HANDSHAKE = 1 << 16,  /* NBC_LOCAL, and messages over 4 KiB begin with a handshake */
    NBC_PATTERN = 1 << 17,    /* the ranks of a node know one another's edges (pattern.h) */
    NBC_FOLDS = NBC_NOT_TREE, /* an algorithm that reduces in the order of ranks if required */
    NBC_DOUBLES = NBC_NOT_RANKS, /* one that reduces in the order of a tree if required */
    NBC_REGROUPS = NBC_NOT_RANKS | NBC_NOT_TREE /* one that does neither */
};

struct nbc_alg {
    enum nbc_coll coll;
    const char *name;
    unsigned needs; /* enum nbc_needs */
    nbc_builder *build;
    const char *purpose; /* for users: the calls that it is for */
};

/* The builders of all rows. */
#define ALG(coll, name, needs, builder, purpose) nbc_builder nbc_##builder;
#include "algs.def"
#undef ALG

/* Defines the builder of a row as a variant of what `function` emits, with further arguments, which
 * may refer to `shape`. */
#define NBC_VARIANT(name, function, ...)                                \
    void nbc_##name(struct nbc_sched *s, const struct nbc_shape *shape) \
    {                                                                   \
        function(s, shape, __VA_ARGS__);                                \
    }

/* All rows of algs.def, in its order, which is that of the collectives. */
extern const struct nbc_alg nbc_algs[];
extern const int nbc_nalgs;

/* Returns the row of an algorithm by its name, in any case of letters; NULL if there is none. */
const struct nbc_alg *nbc_alg_by_name(enum nbc_coll coll, const char *name);

/* Whether the call meets the preconditions of the algorithm. */
bool nbc_alg_applies(const struct nbc_alg *alg, const struct nbc_shape *shape);

/* A tuning rule. It matches calls of a collective whose number of ranks (in an intercommunicator:
 * of both groups) is in [min_size, max_size] and whose nbc_shape_bytes is in [min_bytes,
 * max_bytes]. Calls whose bytes are unknown match only rules from 0 to INT64_MAX. */
struct nbc_rule {
    enum nbc_coll coll;
    int min_size, max_size;
    int64_t min_bytes, max_bytes;
    const struct nbc_alg *alg;
    int64_t segment; /* bytes; 0: the algorithm's default */
    unsigned needs;  /* further preconditions, besides those of the algorithm */
};

struct nbc_rules {
    const struct nbc_rule *rule;
    int nrules;
    int64_t eager;             /* for shapes (struct nbc_shape); 0: unknown */
    int first[NBC_NCOLLS + 1]; /* where those of a collective begin; all 0: they are not sorted */
};

/* The built-in tuning table. */
extern const struct nbc_rules nbc_default_rules;

/* Returns the first rule that matches and whose algorithm applies, or NULL. rules may be NULL. */
const struct nbc_rule *nbc_rule_find(const struct nbc_shape *shape, const struct nbc_rules *rules);

/* Returns the algorithm for a call: `override` if it is not NULL and applies, else that of
 * nbc_rule_find, else the first row that applies. Never NULL: every collective has a row that
 * applies to all its calls. Sets *segment to the segment size of the rule; to 0 if no rule
 * decided. */
const struct nbc_alg *nbc_select(const struct nbc_shape *shape, const struct nbc_alg *override,
                                 const struct nbc_rules *rules, int64_t *segment);

#endif
