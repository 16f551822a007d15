/* SPDX-License-Identifier: MIT */
/* The built-in rules as a table, made of tuning.def. */
#include <limits.h>

#include "select.h"

/* Indices of rows of nbc_algs. */
enum {
#define ALG(coll, name, needs, builder, purpose) AT_##coll##_##name,
#include "algs.def"
#undef ALG
    NALGS
};

#define MANY INT64_MAX
/* clang-format off */
#define RULE_FOR(needs, coll, min_size, max_size, min_bytes, max_bytes, name, segment) \
    {NBC_##coll, min_size, (max_size) > INT_MAX ? INT_MAX : (int)(max_size),           \
     min_bytes, max_bytes, &nbc_algs[AT_##coll##_##name], segment, needs},
/* clang-format on */
#define RULE(coll, min_size, max_size, min_bytes, max_bytes, name, segment) \
    RULE_FOR(NBC_ANY, coll, min_size, max_size, min_bytes, max_bytes, name, segment)
#define RULES_FOR(needs, one, other, ...) \
    RULE_FOR(needs, one, __VA_ARGS__) RULE_FOR(needs, other, __VA_ARGS__)
#define RULES(one, other, ...) RULES_FOR(NBC_ANY, one, other, __VA_ARGS__)

static const struct nbc_rule rules[] = {
#include "tuning.def"
    {0},
};

const struct nbc_rules nbc_default_rules = {rules, sizeof rules / sizeof *rules - 1, 0, {0}};
