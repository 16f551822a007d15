/* SPDX-License-Identifier: MIT */
/* Messages between ranks of a node: short ones in shared memory, longer ones in pieces, long ones
 * by the MPI, at lengths around the limits; more of them than a ring holds; mixed, early and out of
 * order. */
#include "util.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MANY = 400, KIBI = 1024, MOST = 64 /* ranks */ };

static unsigned char content(int from, int number, int at)
{
    return (unsigned char)(from * 37 + number * 11 + at * 5 + (at >> 8) * 3 + (at >> 15) * 7 + 1);
}

static void fill(unsigned char *data, int bytes, int number)
{
    for (int i = 0; i < bytes; i++)
        data[i] = content(test_rank, number, i);
}

static void expect(const unsigned char *data, int bytes, int from, int number)
{
    int wrong = 0;
    for (int i = 0; i < bytes; i++)
        wrong += data[i] != content(from, number, i);
    EXPECT_INT(wrong, 0, "of %d bytes from %d, number %d", bytes, from, number);
}

/* Each rank sends to each other one; those with odd ranks receive every second byte of a buffer
 * twice as large. */
static void exchange(int bytes, bool gaps)
{
    MPI_Datatype every_second;
    unsigned char *in = test_alloc((size_t)(test_size * bytes + 1)),
                  *out = test_alloc((size_t)(2 * test_size * bytes + 1));
    MPI_Request request;
    gaps = gaps && test_rank % 2 == 1;
    MPI_Type_create_resized(MPI_BYTE, 0, 2, &every_second);
    MPI_Type_commit(&every_second);
    memset(out, 0, (size_t)(2 * test_size * bytes));
    for (int to = 0; to < test_size; to++)
        fill(in + to * bytes, bytes, to);
    OK(MPI_Ialltoall(in, bytes, MPI_BYTE, out, bytes, gaps ? every_second : MPI_BYTE,
                     MPI_COMM_WORLD, &request));
    MPI_Type_free(&every_second);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; gaps && i < test_size * bytes; i++)
        out[i] = out[2 * i];
    for (int from = 0; from < test_size; from++)
        expect(out + from * bytes, bytes, from, test_rank);
    free(in);
    free(out);
}

/* What a line holds beside the word of a message, a line, and quarters of the rings that 2 to 100
 * ranks have. */
TEST(lengths_at_the_limits)
{
    const int limits[] = {0,         56,         64,        128,       1 * KIBI,
                          2 * KIBI,  4 * KIBI,   8 * KIBI,  16 * KIBI, 32 * KIBI,
                          64 * KIBI, 128 * KIBI, 256 * KIBI};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        for (int bytes = limits[i] - 1; bytes <= limits[i] + 1; bytes++)
            for (int gaps = 0; bytes >= 0 && gaps < 2; gaps++)
                exchange(bytes, gaps);
}

static int bytes_of(int number)
{
    static const int few[] = {1, 40, 100, 700, 5000, 40000, 270000};
    return few[number * 5 % (int)(sizeof few / sizeof *few)];
}

static unsigned char *buffer[MANY];
static MPI_Request request[MANY];

static void broadcast(int number, int root)
{
    int bytes = bytes_of(number);
    buffer[number] = test_alloc((size_t)bytes);
    memset(buffer[number], 0, (size_t)bytes);
    if (test_rank == root)
        fill(buffer[number], bytes, number);
    OK(MPI_Ibcast(buffer[number], bytes, MPI_BYTE, root, MPI_COMM_WORLD, &request[number]));
}

/* Each is completed by a call of its own. */
static void complete(int root_of(int number), struct rng *order)
{
    int place[MANY];
    for (int i = 0; i < MANY; i++)
        place[i] = i;
    rng_shuffle(order, place, MANY);
    for (int i = 0; i < MANY; i++) {
        int number = place[i], root = root_of(number);
        OK(MPI_Wait(&request[number], MPI_STATUS_IGNORE));
        expect(buffer[number], bytes_of(number), root, number);
        free(buffer[number]);
    }
}

static int turns(int number)
{
    return number % test_size;
}

/* Short and long ones in one ring, more than there is room for. */
TEST(more_than_a_ring_holds)
{
    struct rng own = rng_private(1);
    for (int i = 0; i < MANY; i++)
        broadcast(i, turns(i));
    complete(turns, &own);
}

static int first(int number)
{
    (void)number;
    return 0;
}

/* The others come when the messages are there. */
TEST(early_messages)
{
    struct rng own = rng_private(2);
    if (test_rank > 0)
        usleep(50000);
    for (int i = 0; i < MANY; i++)
        broadcast(i, 0);
    complete(first, &own);
}

/* Persistent ones, which each rank starts in its own order: what arrives first is awaited last. */
TEST(each_starts_in_its_own_order, .wanted = test_has_persistent)
{
    struct rng own = rng_private(3);
    int place[MANY];
    for (int i = 0; i < MANY; i++) {
        buffer[i] = test_alloc((size_t)bytes_of(i));
        OK(MPI_Bcast_init(buffer[i], bytes_of(i), MPI_BYTE, turns(i), MPI_COMM_WORLD, MPI_INFO_NULL,
                          &request[i]));
        place[i] = i;
    }
    for (int start = 0; start < 3; start++) {
        rng_shuffle(&own, place, MANY);
        for (int i = 0; i < MANY; i++) {
            memset(buffer[i], 0, (size_t)bytes_of(i));
            if (test_rank == turns(i))
                fill(buffer[i], bytes_of(i), i + start);
        }
        for (int i = 0; i < MANY; i++)
            OK(MPI_Start(&request[place[i]]));
        OK(MPI_Waitall(MANY, request, MPI_STATUSES_IGNORE));
        for (int i = 0; i < MANY; i++)
            expect(buffer[i], bytes_of(i), turns(i), i + start);
    }
    for (int i = 0; i < MANY; i++) {
        OK(MPI_Request_free(&request[i]));
        free(buffer[i]);
    }
}

/* Each waits for the second of two before it starts the first, whose message, long or short, has
 * arrived meanwhile. */
TEST(the_second_is_awaited_first, .wanted = test_has_persistent)
{
    enum { LONG = 50000, TIMES = 50 };
    static unsigned char data[2][LONG];
    MPI_Request pair[2];
    for (int i = 0; i < 2; i++)
        OK(MPI_Bcast_init(data[i], i == 0 ? LONG : 10, MPI_BYTE, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                          &pair[i]));
    for (int k = 0; k < 2 * TIMES; k++) {
        const int one = k % 2, bytes[] = {LONG, 10};
        for (int i = 0; i < 2 && test_rank == 0; i++)
            fill(data[i], bytes[i], k + i);
        if (test_rank == 0)
            OK(MPI_Start(&pair[one]));
        OK(MPI_Start(&pair[!one]));
        OK(MPI_Wait(&pair[!one], MPI_STATUS_IGNORE));
        if (test_rank > 0)
            OK(MPI_Start(&pair[one]));
        OK(MPI_Wait(&pair[one], MPI_STATUS_IGNORE));
        for (int i = 0; i < 2; i++)
            expect(data[i], bytes[i], 0, k + i);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    for (int i = 0; i < 2; i++)
        OK(MPI_Request_free(&pair[i]));
}

static bool nbcshim_has_peers(void)
{
    return !test_native && test_size > 1;
}

/* The root is ahead by more messages than a ring holds. The others, which wait for its message in
 * the MPI, receive them meanwhile, as the MPI does. */
TEST(a_root_is_far_ahead, .wanted = nbcshim_has_peers)
{
    enum { AHEAD = 2000 };
    int value = -1, token = 0, wrong = 0;
    MPI_Request one;
    if (test_rank > 0)
        OK(MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < AHEAD; i++) {
        value = test_rank == 0 ? i : -1;
        OK(MPI_Ibcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD, &one));
        OK(MPI_Wait(&one, MPI_STATUS_IGNORE));
        wrong += value != i;
    }
    for (int to = 1; to < test_size && test_rank == 0; to++)
        OK(MPI_Send(&token, 1, MPI_INT, to, 0, MPI_COMM_WORLD));
    EXPECT_INT(wrong, 0);
}

/* Three messages from one neighbor, the middle one long: its elements have gaps where those of the
 * others have none, or the reverse. Receives are there before the messages. */
static void exchange_three(bool gaps, int middle)
{
    enum { MESSAGES = 3, BOTH = 2 * MESSAGES };
    const int bytes[MESSAGES] = {100, middle, 200};
    const int right = (test_rank + 1) % test_size, left = (test_rank + test_size - 1) % test_size;
    const int to[] = {right, right, right}, from[] = {left, left, left};
    int one[] = {1, 1, 1};
    MPI_Aint at[BOTH] = {0};
    MPI_Datatype type[BOTH];
    MPI_Comm comm;
    unsigned char *data[BOTH];
    for (int i = 0; i < BOTH; i++) {
        const int n = bytes[i % MESSAGES], step = (i % MESSAGES == 1) == gaps ? 2 : 1;
        data[i] = test_alloc((size_t)(step * n));
        memset(data[i], 0, (size_t)(step * n));
        for (int k = 0; k < n && i < MESSAGES; k++)
            data[i][k * step] = content(test_rank, i, k);
        OK(MPI_Type_vector(n, 1, step, MPI_BYTE, &type[i]));
        OK(MPI_Type_commit(&type[i]));
        OK(MPI_Get_address(data[i], &at[i]));
    }
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, MESSAGES, from, MPI_UNWEIGHTED, MESSAGES, to,
                                      MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm));
    OK(MPI_Barrier(comm));
    if (test_rank == 0)
        usleep(20000);
    OK(MPI_Ineighbor_alltoallw(MPI_BOTTOM, one, at, type, MPI_BOTTOM, one, at + MESSAGES,
                               type + MESSAGES, comm, request));
    OK(MPI_Wait(request, MPI_STATUS_IGNORE));
    for (int i = 0; i < BOTH; i++) {
        const int n = bytes[i % MESSAGES], step = (i % MESSAGES == 1) == gaps ? 2 : 1;
        for (int k = 0; k < n && i >= MESSAGES; k++)
            data[i][k] = data[i][k * step];
        if (i >= MESSAGES)
            expect(data[i], n, left, i - MESSAGES);
        OK(MPI_Type_free(&type[i]));
        free(data[i]);
    }
    OK(MPI_Comm_free(&comm));
}

TEST(a_long_one_between_short_ones)
{
    for (int middle = 100000; middle <= 300000; middle += 200000) {
        exchange_three(false, middle);
        exchange_three(true, middle);
    }
}

static long resident(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%*d %ld", &pages) != 1)
        pages = 0;
    if (f)
        fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / KIBI);
}

/* The last rank is late each time; meanwhile the first ones are ahead, and what they send must not
 * gather in the memory of the root. */
TEST(a_sender_is_far_ahead)
{
    enum { BYTES = 200 * KIBI, TIMES = 300 };
    unsigned char *in = test_alloc(BYTES), *out = test_alloc((size_t)(test_size * BYTES));
    fill(in, BYTES, 0);
    long before = 0, most = 0;
    for (int i = 0; i < TIMES; i++) {
        if (test_rank == test_size - 1)
            usleep(100);
        memset(out, 0, (size_t)(test_size * BYTES));
        OK(MPI_Igather(in, BYTES, MPI_BYTE, out, BYTES, MPI_BYTE, 0, MPI_COMM_WORLD, request));
        OK(MPI_Wait(request, MPI_STATUS_IGNORE));
        long now = resident();
        before = i ? before : now;
        most = now > most ? now : most;
    }
    for (int from = 0; from < test_size && test_rank == 0; from++)
        expect(out + from * BYTES, BYTES, from, 0);
    EXPECT(test_native || most - before < TIMES * BYTES / KIBI / 8, "%ld KiB more", most - before);
    free(in);
    free(out);
}

/* A message in pieces that nobody awaits yet, and one behind it that the other rank gets before a
 * message of the MPI. */
TEST(a_short_one_behind_pieces, .wanted = nbcshim_has_peers)
{
    enum { BYTES = 200 * KIBI };
    unsigned char *data = test_alloc(BYTES);
    int value = test_rank == 0 ? 7 : 0, token = 0;
    memset(data, 0, BYTES);
    if (test_rank == 0)
        fill(data, BYTES, 1);
    if (test_rank > 0)
        OK(MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Ibcast(data, BYTES, MPI_BYTE, 0, MPI_COMM_WORLD, &request[0]));
    OK(MPI_Ibcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD, &request[1]));
    OK(MPI_Wait(&request[1], MPI_STATUS_IGNORE));
    for (int to = 1; to < test_size && test_rank == 0; to++)
        OK(MPI_Send(&token, 1, MPI_INT, to, 0, MPI_COMM_WORLD));
    OK(MPI_Wait(&request[0], MPI_STATUS_IGNORE));
    EXPECT_INT(value, 7);
    expect(data, BYTES, 0, 1);
    free(data);
}

/* The root waits for messages of other lengths than it gets. Nothing is left of that when the tag
 * comes again. */
static void gather_wrong(int sent, int expected, MPI_Comm comm)
{
    enum { LATER = 270000, TAGS = 512 };
    unsigned char *in = test_alloc(2 * LATER), *out = test_alloc((size_t)(test_size * 2 * LATER));
    int counts[MOST], at[MOST], class = MPI_SUCCESS;
    test_place("%d bytes where %d are expected", sent, expected);
    for (int i = 0; i < test_size; i++) {
        counts[i] = i ? expected : sent;
        at[i] = i * 2 * LATER;
    }
    fill(in, 2 * LATER, 0);
    if (test_rank > 0)
        usleep(20000);
    OK(MPI_Igatherv(in, sent, MPI_BYTE, out, counts, at, MPI_BYTE, 0, comm, request));
    MPI_Error_class(MPI_Wait(request, MPI_STATUS_IGNORE), &class);
    EXPECT_INT(class, test_rank || test_size == 1 ? MPI_SUCCESS : MPI_ERR_TRUNCATE);
    for (int i = 0; i < TAGS; i++) {
        int bytes = i % 8 ? LATER : LATER / 3;
        OK(MPI_Igather(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, 0, comm, request));
        OK(MPI_Wait(request, MPI_STATUS_IGNORE));
        for (int from = 0; from < test_size && test_rank == 0 && i % 32 == 0; from++)
            expect(out + from * bytes, bytes, from, 0);
    }
    free(in);
    free(out);
}

TEST(messages_of_another_length)
{
    const int bytes[] = {100, 100000, 150000, 300000};
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int sent = 0; sent < 4; sent++)
        for (int expected = 0; expected < 4; expected++)
            if (sent != expected)
                gather_wrong(bytes[sent], bytes[expected], comm);
    MPI_Comm_free(&comm);
}

/* MPICH 4.0.2 packs some elements wrongly if there are more than 500 datatypes. */
TEST(many_datatypes)
{
    enum { TYPES = 1200, BLOCKS = 20, INTS = 100 };
    static MPI_Datatype type[TYPES];
    static int bytes[TYPES], data[2][INTS];
    struct rng shared = rng_shared(4);
    int wrong = 0;
    for (int i = 0; i < TYPES; i++) {
        int length[BLOCKS], at[BLOCKS], n = 1 + rng_below(&shared, BLOCKS), end = 0;
        for (int k = 0; k < n; k++) {
            length[k] = 1 + rng_below(&shared, 3);
            at[k] = end + rng_below(&shared, 3);
            end = at[k] + length[k];
        }
        OK(MPI_Type_indexed(n, length, at, MPI_INT, &type[i]));
        OK(MPI_Type_commit(&type[i]));
        OK(MPI_Type_size(type[i], &bytes[i]));
    }
    for (int i = 0; i < TYPES; i++) {
        for (int k = 0; k < INTS; k++)
            data[0][k] = i + k + 1, data[1][k] = test_rank == 0 ? i + k + 1 : 0;
        OK(MPI_Ibcast(data[1], 1, type[i], 0, MPI_COMM_WORLD, request));
        OK(MPI_Wait(request, MPI_STATUS_IGNORE));
        for (int k = 0; k < INTS && test_rank > 0; k++)
            bytes[i] -= data[1][k] == data[0][k] ? (int)sizeof(int) : 0;
        wrong += test_rank > 0 && bytes[i] != 0;
    }
    EXPECT_INT(wrong, 0);
    for (int i = 0; i < TYPES; i++)
        OK(MPI_Type_free(&type[i]));
}

#if defined MPICH_NUMVERSION /* Open MPI 4.1.4 makes no such window */
/* What nbcshim has pending on MPI_COMM_SELF while ranks wait does not receive its signals. */
TEST(signals_to_this_rank)
{
    int value = test_rank, sum = 0;
    MPI_Win window;
    MPI_Group self;
    for (int i = 0; i < 200; i++) {
        OK(MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, request));
        OK(MPI_Wait(request, MPI_STATUS_IGNORE));
    }
    OK(MPI_Win_create(&value, sizeof value, 1, MPI_INFO_NULL, MPI_COMM_SELF, &window));
    OK(MPI_Comm_group(MPI_COMM_SELF, &self));
    OK(MPI_Win_post(self, 0, window));
    OK(MPI_Win_start(self, 0, window));
    OK(MPI_Win_complete(window));
    OK(MPI_Win_wait(window));
    OK(MPI_Win_free(&window));
    EXPECT_INT(sum, sum_of_ranks());
}
#endif

/* A long message of the program moves while collectives never let the ranks wait. */
TEST(messages_of_the_program_move, .wanted = test_has_peers)
{
    enum { LONG = 4 << 20 };
    char *data = calloc(1, LONG);
    int over = 0, all = 0, sum, one = 1;
    MPI_Request message = MPI_REQUEST_NULL, count;
    if (test_rank == 0)
        OK(MPI_Isend(data, LONG, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &message));
    if (test_rank == 1)
        OK(MPI_Irecv(data, LONG, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &message));
    for (int i = 0; i < 1000000 && !all; i++) {
        if (test_rank == 1 && !over)
            OK(MPI_Request_get_status(message, &over, MPI_STATUS_IGNORE));
        OK(MPI_Iallreduce(&over, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &count));
        OK(MPI_Wait(&count, MPI_STATUS_IGNORE));
    }
    CHECK(all);
    OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &count));
    OK(MPI_Wait(&count, MPI_STATUS_IGNORE));
    EXPECT_INT(sum, test_size);
    OK(MPI_Wait(&message, MPI_STATUS_IGNORE));
    free(data);
}
