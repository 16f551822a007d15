/* SPDX-License-Identifier: MIT */
/* Tuning rules as text. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "rules.h"
#include "unit.h"

static struct nbc_rules *parse(const char *text)
{
    struct nbc_rules_error error;
    struct nbc_rules *rules = nbc_rules_parse(text, NULL, &error);
    ck_assert_msg(rules, "%s", error.what);
    return rules;
}

static void check_rule(const struct nbc_rule *r, enum nbc_coll coll, int min_size, int max_size,
                       int64_t min_bytes, int64_t max_bytes, const char *alg, int64_t segment)
{
    ck_assert_int_eq(r->coll, coll);
    ck_assert_int_eq(r->min_size, min_size);
    ck_assert_int_eq(r->max_size, max_size);
    ck_assert_int_eq(r->min_bytes, min_bytes);
    ck_assert_int_eq(r->max_bytes, max_bytes);
    ck_assert_ptr_eq(r->alg, nbc_alg_by_name(coll, alg));
    ck_assert_int_eq(r->segment, segment);
}

UNIT(lines_become_rules)
{
    struct nbc_rules *r = parse("# measured\n"
                                "\n"
                                "allreduce 2-4 0-64k recursive_doubling\n"
                                "\tbcast   8-  1M-   chain 32K  # comment\r\n"
                                "alltoall * * pairwise\n"
                                "barrier 3 * one_round");
    ck_assert_int_eq(r->nrules, 4);
    check_rule(&r->rule[0], NBC_ALLREDUCE, 2, 4, 0, 65536, "recursive_doubling", 0);
    check_rule(&r->rule[1], NBC_BCAST, 8, INT_MAX, 1 << 20, INT64_MAX, "chain", 32768);
    check_rule(&r->rule[2], NBC_ALLTOALL, 0, INT_MAX, 0, INT64_MAX, "pairwise", 0);
    check_rule(&r->rule[3], NBC_BARRIER, 3, 3, 0, INT64_MAX, "one_round", 0);
    nbc_rules_free(r);
    r = parse("bcast * * chain 1K nodes equal\nbcast * * linear\nbcast * * linear local\n"
              "bcast * * linear spread pow2\nbcast * * linear oversubscribed");
    ck_assert_int_eq(r->rule[0].segment, 1024);
    ck_assert_uint_eq(r->rule[0].needs, NBC_NODES | NBC_EQUAL);
    ck_assert_uint_eq(r->rule[1].needs, 0);
    ck_assert_uint_eq(r->rule[2].needs, NBC_LOCAL);
    ck_assert_uint_eq(r->rule[3].needs, NBC_SPREAD | NBC_POW2);
    ck_assert_uint_eq(r->rule[4].needs, NBC_OVERSUBSCRIBED);
    nbc_rules_free(r);
    r = parse("bcast 4-4 9007199254740991K-9007199254740991K linear");
    check_rule(&r->rule[0], NBC_BCAST, 4, 4, INT64_MAX - 1023, INT64_MAX - 1023, "linear", 0);
    nbc_rules_free(r);
    r = parse("bcast * * linear 1K commutative pow2 even nodes equal local spread sockets "
              "oversubscribed handshake order_ranks order_tree");
    ck_assert_int_eq(r->rule[0].segment, 1024);
    ck_assert_uint_eq(r->rule[0].needs & (NBC_COMMUTATIVE | NBC_TREE), NBC_COMMUTATIVE | NBC_TREE);
    nbc_rules_free(r);
    r = parse("");
    ck_assert_int_eq(r->nrules, 0);
    nbc_rules_free(r);
}

UNIT(rules_are_printed_as_they_are_read)
{
    struct nbc_rules *r = parse("bcast 3 * hierarchical 1K nodes oversubscribed\nbarrier 3 * tree");
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    nbc_rule_print(out, &r->rule[0]);
    nbc_rule_print(out, &r->rule[1]);
    fclose(out);
    ck_assert_ptr_ne(strstr(text, " hierarchical 1024 nodes oversubscribed\n"), NULL);
    ck_assert_ptr_ne(strstr(text, " linear\n"), NULL);
    free(text);
    nbc_rules_free(r);
}

UNIT(others_come_behind)
{
    struct nbc_rules_error error;
    struct nbc_rules *r = nbc_rules_parse("bcast * * linear\n", &nbc_default_rules, &error);
    ck_assert_ptr_ne(r, NULL);
    ck_assert_int_eq(r->nrules, nbc_default_rules.nrules + 1);
    ck_assert_str_eq(r->rule[0].alg->name, "linear");
    ck_assert(memcmp(&r->rule[1], nbc_default_rules.rule,
                     nbc_default_rules.nrules * sizeof *r->rule) == 0);
    nbc_rules_free(r);
}

UNIT(what_is_no_rule_is_told)
{
    static const struct {
        const char *text;
        int line;
        const char *what;
    } table[] = {
        {"bcast 1 2\n", 1, "expected"},
        {"bcast 1 2 linear 3 pow2 pow2 pow2 pow2 pow2 pow2 pow2 pow2 pow2 pow2 pow2 pow2 pow2\n", 1,
         "expected"},
        {"bcast 1 2 linear 3 4\n", 1, "4 is not a segment size"},
        {"bcast * 9223372036854775808 linear\n", 1, "is not a range of bytes"},
        {"bcast * * linear\nbroadcast * * linear\n", 2, "unknown collective broadcast"},
        {"\n\nbcast 4-2 * linear\n", 3, "4-2 is not a range of ranks"},
        {"bcast -4 * linear\n", 1, "-4 is not a range of ranks"},
        {"bcast 4x * linear\n", 1, "4x is not a range of ranks"},
        {"bcast * 1-2-3 linear\n", 1, "1-2-3 is not a range of bytes"},
        {"bcast * 99999999999999999999 linear\n", 1, "is not a range of bytes"},
        {"bcast * 9999999999999G linear\n", 1, "is not a range of bytes"},
        {"bcast * * ring\n", 1, "bcast has no algorithm ring"},
        {"bcast * * chain 0\n", 1, "0 is not a segment size"},
        {"bcast * * chain big\n", 1, "big is not a segment size"},
        {"bcast * * chain 12x\n", 1, "12x is not a segment size"},
        {"eager 0\n", 1, "0 is not a number of bytes"},
        {"eager 12x\n", 1, "12x is not a number of bytes"},
        {"eager 12 13\n", 1, "expected"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct nbc_rules_error error;
        ck_assert_ptr_eq(nbc_rules_parse(table[i].text, NULL, &error), NULL);
        ck_assert_int_eq(error.line, table[i].line);
        ck_assert_msg(strstr(error.what, table[i].what), "%s", error.what);
    }
}

UNIT(eager_limit)
{
    struct nbc_rules *with = parse("bcast * * linear\neager 12K\n");
    struct nbc_rules *without = parse("bcast * * linear\n"), *sorted = nbc_rules_sort(with);
    struct nbc_rules_error error;
    struct nbc_rules *then = nbc_rules_parse("", with, &error);
    ck_assert_int_eq(with->nrules, 1);
    ck_assert_int_eq(with->eager, 12 * 1024);
    ck_assert_int_eq(without->eager, 0);
    ck_assert_int_eq(sorted->eager, with->eager);
    ck_assert_int_eq(then->eager, with->eager);
    ck_assert_int_ne(nbc_rules_hash(with), nbc_rules_hash(without));
    nbc_rules_free(with);
    nbc_rules_free(without);
    nbc_rules_free(sorted);
    nbc_rules_free(then);
}

UNIT(a_long_line_is_refused)
{
    struct nbc_rules_error error;
    char text[1000];
    memset(text, ' ', sizeof text);
    memcpy(text + sizeof text - 20, "bcast * * linear\n", 18);
    ck_assert_ptr_eq(nbc_rules_parse(text, NULL, &error), NULL);
    ck_assert_int_eq(error.line, 1);
    for (int length = 250; length < 260; length++) {
        memset(text, ' ', sizeof text);
        memcpy(text + length - 16, "bcast * * linear", 17);
        struct nbc_rules *one = nbc_rules_parse(text, NULL, &error);
        ck_assert_int_eq(one != NULL, length < 256);
        ck_assert_int_eq(strcmp(error.what, "line 1: the line is too long") == 0, length >= 256);
        nbc_rules_free(one);
    }
    memset(text, '#', sizeof text - 20); /* a comment may be as long as it likes */
    text[sizeof text - 20] = '\0';
    struct nbc_rules *r = parse(text);
    ck_assert_int_eq(r->nrules, 0);
    nbc_rules_free(r);
}

/* Printed and read again, the built-in rules are the same; any change changes the hash. */
UNIT(printed_rules_can_be_read)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (int i = 0; i < nbc_default_rules.nrules; i++)
        nbc_rule_print(out, &nbc_default_rules.rule[i]);
    fclose(out);
    struct nbc_rules *r = parse(text);
    ck_assert_int_eq(r->nrules, nbc_default_rules.nrules);
    int same = nbc_rules_hash(&nbc_default_rules), segment = 0;
    ck_assert_int_ge(same, 0);
    ck_assert_int_eq(nbc_rules_hash(r), same);
    for (int i = 0; i < r->nrules; i++)
        segment += r->rule[i].segment > 0;
    ck_assert_int_gt(segment, 0);
    nbc_rules_free(r);
    text[0] = 'x'; /* the first collective has another name now, or none */
    struct nbc_rules_error error;
    ck_assert_ptr_eq(nbc_rules_parse(text, NULL, &error), NULL);
    struct nbc_rules *less = parse(strchr(text, '\n'));
    ck_assert_int_ne(nbc_rules_hash(less), same);
    nbc_rules_free(less);
    free(text);
}

static char *printed(const struct nbc_rule *rule)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    nbc_rule_print(out, rule);
    fclose(out);
    return text;
}

UNIT(ranges_are_printed_as_people_write_them)
{
    static const char *const ranges[] = {"*", "0", "5", "5-", "0-7", "5-7"};
    enum { NRANGES = sizeof ranges / sizeof *ranges };
    for (int i = 0; i < NRANGES * NRANGES; i++) {
        const char *ranks = ranges[i % NRANGES], *bytes = ranges[i / NRANGES];
        char line[80], words[2][20];
        snprintf(line, sizeof line, "bcast %s %s linear", ranks, bytes);
        struct nbc_rules *r = parse(line);
        char *text = printed(&r->rule[0]);
        ck_assert_int_eq(sscanf(text, "bcast %19s %19s", words[0], words[1]), 2);
        ck_assert_str_eq(words[0], ranks);
        ck_assert_str_eq(words[1], bytes);
        free(text);
        nbc_rules_free(r);
    }
}

static void check_round_trip(const struct nbc_rule *rule)
{
    char *text = printed(rule);
    struct nbc_rules *r = parse(text);
    ck_assert_int_eq(r->nrules, 1);
    check_rule(&r->rule[0], rule->coll, rule->min_size, rule->max_size, rule->min_bytes,
               rule->max_bytes, rule->alg->name, rule->segment);
    ck_assert_uint_eq(r->rule[0].needs, rule->needs);
    nbc_rules_free(r);
    free(text);
}

/* Each set of needs; all of them come with the longest numbers that there are. */
UNIT(every_rule_can_be_read_again, .times = nbc_nalgs)
{
    static const int sizes[][2] = {{0, INT_MAX}, {0, 7}, {7, INT_MAX}, {INT_MAX - 2, INT_MAX - 1}};
    static const int64_t bytes[][2] = {
        {0, INT64_MAX}, {0, 7}, {INT64_MAX, INT64_MAX}, {INT64_MAX - 2, INT64_MAX - 1}};
    const unsigned all = NBC_COMMUTATIVE | NBC_POW2 | NBC_EVEN | NBC_NODES | NBC_EQUAL | NBC_LOCAL |
                         NBC_SPREAD | NBC_SOCKETS | NBC_OVERSUBSCRIBED | NBC_HANDSHAKE;
    const struct nbc_alg *alg = &nbc_algs[_i];
    int n = 0;
    for (unsigned needs = 0; needs <= all; needs++) {
        if (needs & ~all)
            continue;
        check_round_trip(&(struct nbc_rule){.coll = alg->coll,
                                            .min_size = sizes[n % 4][0],
                                            .max_size = sizes[n % 4][1],
                                            .min_bytes = bytes[n / 4 % 4][0],
                                            .max_bytes = bytes[n / 4 % 4][1],
                                            .alg = alg,
                                            .segment = n % 2 ? INT64_MAX : 0,
                                            .needs = needs});
        n++;
    }
    ck_assert_int_eq(n, 1024);
}
