/* SPDX-License-Identifier: MIT */
#include "sched_print.h"

#include <inttypes.h>
#include <stdlib.h>

#include "sched.h"

static const char *const kinds[] = {"send", "recv", "copy", "reduce", "join"};
static const char *const bufs[] = {"send", "recv", "temp"};

/* "recv+16 4*t2": four elements of type slot 2 from byte 16 of the receive buffer. */
static void print_ref(FILE *out, struct nbc_ref r)
{
    fprintf(out, " %s%+" PRId64 " %" PRId64, bufs[r.buf], r.off, r.count);
    if (r.type == NBC_TYPE_BYTE)
        fprintf(out, " bytes");
    else
        fprintf(out, "*t%d", (int)r.type);
}

static void print_op(FILE *out, const struct nbc_op *op)
{
    fprintf(out, "%s", kinds[op->kind]);
    switch (op->kind) {
    case NBC_OP_SEND:
        print_ref(out, nbc_op_a(op));
        fprintf(out, " to %d", (int)op->peer);
        break;
    case NBC_OP_RECV:
        print_ref(out, nbc_op_a(op));
        fprintf(out, " from %d", (int)op->peer);
        break;
    case NBC_OP_COPY:
        print_ref(out, nbc_op_a(op));
        fprintf(out, " <-");
        print_ref(out, nbc_op_b(op));
        break;
    case NBC_OP_REDUCE:
        print_ref(out, nbc_op_a(op));
        fprintf(out, " <- %s%+" PRId64 " op %s%+" PRId64, bufs[op->b_buf], op->b_off,
                bufs[op->c_buf], op->c_off);
        break;
    }
}

/* The edges that end at operation i: list[start[i]] … list[start[i + 1] − 1]. An issue edge is
 * stored as the complement of its origin. */
struct preds {
    int32_t *start, *list;
};

static bool invert(const struct nbc_sched *s, struct preds *p)
{
    p->start = calloc((size_t)s->nops + 2, sizeof *p->start);
    p->list = malloc(((size_t)s->nsucc + 1) * sizeof *p->list);
    if (!p->start || !p->list)
        return false; /* unreached: no memory */
    for (int32_t i = 0; i < s->nsucc; i++)
        p->start[s->succ[i] + 2]++;
    for (nbc_id id = 1; id <= s->nops; id++)
        p->start[id + 1] += p->start[id];
    for (nbc_id id = 0; id < s->nops; id++) {
        const struct nbc_op *op = &s->ops[id];
        for (int32_t i = 0; i < op->nsucc_issue + op->nsucc_done; i++)
            p->list[p->start[s->succ[op->succ + i] + 1]++] = i < op->nsucc_issue ? ~id : id;
    }
    return true;
}

static void print_edges(FILE *out, const struct preds *p, nbc_id id, bool issue)
{
    const char *word = issue ? ", posted after" : ", after";
    for (int32_t i = p->start[id]; i < p->start[id + 1]; i++) {
        if ((p->list[i] < 0) != issue)
            continue;
        fprintf(out, "%s %d", word, (int)(issue ? ~p->list[i] : p->list[i]));
        word = "";
    }
}

void nbc_sched_print(const struct nbc_sched *s, FILE *out)
{
    struct preds p;
    fprintf(out, "%d operations, %d messages, %" PRId64 " bytes temporary\n", (int)s->nops,
            (int)s->nmsgs, s->temp_bytes);
    if (invert(s, &p)) {
        for (nbc_id id = 0; id < s->nops; id++) {
            fprintf(out, "%4d ", (int)id);
            print_op(out, &s->ops[id]);
            print_edges(out, &p, id, false);
            print_edges(out, &p, id, true);
            fputc('\n', out);
        }
    }
    free(p.start);
    free(p.list);
}
