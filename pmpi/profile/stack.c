/* SPDX-License-Identifier: MIT */
/* The call stacks from which the program calls MPI. To walk a stack takes microseconds, so that it
 * is done once for each: a later call from the same address at the same height of the stack has
 * the same callers if the same return addresses lie where they lay then. Under the mutex. */
#include "profile/record.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

/* Without an end the stacks of a program that takes memory of any size from its stack could use
 * all memory: beyond this number only the caller counts. */
enum { CHAINS = 4096, MOST = 8192 };

static const struct nbc_stack *chains[CHAINS];
static int nstacks;

/* Later frames are looked at only where the earlier ones are as they were: they exist then. */
static bool is_here(const struct nbc_stack *s, const void *caller, const char *place)
{
    if (s->frame[0] != caller || s->place != place)
        return false;
    for (int i = 1; i < s->n; i++)
        if (memcmp(place + s->offset[i], &s->frame[i], sizeof s->frame[i]) != 0)
            return false;
    return true;
}

/* The return address to this frame lies below the place where the frame begins. */
static _Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *to)
{
    struct nbc_stack *s = to;
    uintptr_t address = _Unwind_GetIP(context);
    const char *top = s->place, *at;
    memcpy(&top, &(uintptr_t){_Unwind_GetCFA(context)}, sizeof top);
    if (top <= s->place + s->offset[s->n - 1] + sizeof address)
        return _URC_NO_REASON; /* not above the last frame: of this library */
    const char *last = s->place + s->offset[s->n - 1];
    for (at = top - sizeof address; at > last; at -= sizeof address)
        if (memcmp(at, &address, sizeof address) == 0)
            break;
    if (at <= last || at - s->place > INT32_MAX)
        return _URC_END_OF_STACK;
    memcpy(&s->frame[s->n], &address, sizeof address);
    s->offset[s->n++] = (int32_t)(at - s->place);
    return s->n < NBC_STACK_DEPTH ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static const struct nbc_stack *find_same(const struct nbc_stack *wanted)
{
    for (int i = 0; i < CHAINS; i++)
        for (const struct nbc_stack *s = chains[i]; s; s = s->next)
            if (s->n == wanted->n &&
                memcmp(s->frame, wanted->frame, s->n * sizeof s->frame[0]) == 0)
                return s->same;
    return NULL;
}

const struct nbc_stack *nbc_stack_find(const void *caller, const void *place)
{
    uint64_t key = (uint64_t)(uintptr_t)caller ^ (uint64_t)(uintptr_t)place << 20;
    const struct nbc_stack **chain = &chains[(key * UINT64_C(0x9e3779b97f4a7c15)) >> 52];
    for (const struct nbc_stack *s = *chain; s; s = s->next)
        if (is_here(s, caller, place))
            return s->same;
    struct nbc_stack *s = calloc(1, sizeof *s);
    if (!s)
        return NULL; /* unreached: no memory */
    *s = (struct nbc_stack){.n = 1, .frame = {caller}, .place = place};
    if (nstacks < MOST)
        _Unwind_Backtrace(add_frame, s);
    s->same = find_same(s);
    if (!s->same)
        s->same = s;
    else if (nstacks >= MOST) {
        const struct nbc_stack *same = s->same;
        free(s);
        return same;
    }
    s->next = *chain;
    *chain = s;
    nstacks++;
    return s->same;
}
