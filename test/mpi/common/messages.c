/* SPDX-License-Identifier: MIT */
#include "messages.h"

#include <stdlib.h>

enum { MAX_BYTES = 3000, MAX_TAG = 32767 };

static unsigned char byte_of(const struct message *m, int i)
{
    return (unsigned char)mix64(m->key + (uint64_t)(m->round * 65536 + i));
}

void messages_draw(const struct group *g, struct rng *shared, struct message *in,
                   struct message *out)
{
    int n = rng_below(shared, MAX_BYTES), tag = rng_below(shared, MAX_TAG);
    int shift = rng_below(shared, 64) % g->size;
    int to = (g->rank + shift) % g->size, from = (g->rank - shift + g->size) % g->size;
    uint64_t key = rng_next(shared);

    *in = (struct message){true, n, from, tag, test_alloc((size_t)n), mix_in(key, from), 0, 0};
    *out = (struct message){false, n, to, tag, test_alloc((size_t)n), mix_in(key, g->rank), 0, 0};
}

void message_fill(struct message *m, int round)
{
    m->round = round;
    for (int i = 0; i < m->n; i++)
        m->bytes[i] = m->receives ? 0 : byte_of(m, i);
}

MPI_Request message_start(struct message *m, MPI_Comm comm)
{
    MPI_Request r;

    if (m->receives)
        MPI_Irecv(m->bytes, m->n, MPI_BYTE, m->other, m->tag, comm, &r);
    else if (m->how == MESSAGE_SYNCHRONOUS)
        MPI_Issend(m->bytes, m->n, MPI_BYTE, m->other, m->tag, comm, &r);
    else if (m->how == MESSAGE_BUFFERED)
        MPI_Ibsend(m->bytes, m->n, MPI_BYTE, m->other, m->tag, comm, &r);
    else
        MPI_Isend(m->bytes, m->n, MPI_BYTE, m->other, m->tag, comm, &r);
    return r;
}

MPI_Request message_init(struct message *m, MPI_Comm comm)
{
    MPI_Request r;

    if (m->receives)
        MPI_Recv_init(m->bytes, m->n, MPI_BYTE, m->other, m->tag, comm, &r);
    else if (m->how == MESSAGE_SYNCHRONOUS)
        MPI_Ssend_init(m->bytes, m->n, MPI_BYTE, m->other, m->tag, comm, &r);
    else if (m->how == MESSAGE_BUFFERED)
        MPI_Bsend_init(m->bytes, m->n, MPI_BYTE, m->other, m->tag, comm, &r);
    else
        MPI_Send_init(m->bytes, m->n, MPI_BYTE, m->other, m->tag, comm, &r);
    return r;
}

static int right_bytes(const struct message *m)
{
    const volatile unsigned char *bytes = m->bytes;
    int i = 0;

    while (i < m->n && bytes[i] == byte_of(m, i))
        i++;
    return i;
}

bool message_is_right(const struct message *m)
{
    return right_bytes(m) == m->n;
}

void message_check(const struct message *m, const MPI_Status *status)
{
    int n;

    if (!m->receives)
        return;
    n = right_bytes(m);
    EXPECT_INT(n, m->n, "bytes that are right of a message from %d, tag %d", m->other, m->tag);
    if (!status)
        return;
    MPI_Get_count(status, MPI_BYTE, &n);
    EXPECT_INT(status->MPI_SOURCE, m->other);
    EXPECT_INT(status->MPI_TAG, m->tag);
    EXPECT_INT(n, m->n);
}

void message_clear(struct message *m)
{
    free(m->bytes);
}
