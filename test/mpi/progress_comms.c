/* SPDX-License-Identifier: MIT */
/* Progress of collectives while rank 0 is blocked in a constructor of communicators:
 * common/blocked.h. */
#include "blocked.h"
#include "config.h"

#include <string.h>
#include <unistd.h>

/* The new communicator works, and so do nonblocking collectives on it. */
static void use(MPI_Comm *comm)
{
    MPI_Request request;
    int mine = 1, sum = 0, size, remote, between;
    MPI_Comm_size(*comm, &size);
    MPI_Comm_test_inter(*comm, &between);
    if (between) {
        MPI_Comm_remote_size(*comm, &remote);
        size = remote;
    }
    OK(MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, *comm, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT_INT(sum, size);
    OK(MPI_Comm_free(comm));
}

/* A parent's third constructor takes a range of tags that the second one left, without an exchange
 * (ranges.h), where the MPI calls nbcshim and is not Open MPI. */
static void make_two(MPI_Comm parent)
{
    for (int i = 0; i < 2; i++) {
        MPI_Comm comm;
        OK(MPI_Comm_dup(parent, &comm));
        OK(MPI_Comm_free(&comm));
    }
}

static void make_two_before(void)
{
    make_two(blocked_comm);
}

static MPI_Comm cart = MPI_COMM_NULL;   /* made before the collectives start */
static MPI_Comm halves = MPI_COMM_NULL; /* {0, 2, …} and {1, 3, …} */
static MPI_Comm inter = MPI_COMM_NULL;  /* between them */
static MPI_Group everybody;
static int one = 1, next, last; /* in a ring of all */

static void make_two_of_cart(void)
{
    make_two(cart);
}

static void make_two_of_inter(void)
{
    make_two(inter);
}

#define CONSTRUCTS(name, before, function, ...)       \
    BLOCKED(name, .prepare = before, .in = #function) \
    {                                                 \
        MPI_Comm comm = MPI_COMM_NULL;                \
        OK(MPI_##function(__VA_ARGS__, &comm));       \
        use(&comm);                                   \
    }
CONSTRUCTS(duplicate, make_two_before, Comm_dup, blocked_comm)
#ifdef HAVE_MPI_COMM_DUP_WITH_INFO
CONSTRUCTS(dup_with_info, make_two_before, Comm_dup_with_info, blocked_comm, MPI_INFO_NULL)
#endif
CONSTRUCTS(create, make_two_before, Comm_create, blocked_comm, everybody)
CONSTRUCTS(split, make_two_before, Comm_split, blocked_comm, test_rank % 2, -test_rank)
#ifdef HAVE_MPI_COMM_SPLIT_TYPE
CONSTRUCTS(split_type, make_two_before, Comm_split_type, blocked_comm, MPI_COMM_TYPE_SHARED, 0,
           MPI_INFO_NULL)
#endif
CONSTRUCTS(cart_sub, make_two_of_cart, Cart_sub, cart, &one)
CONSTRUCTS(dist_graph_create, make_two_before, Dist_graph_create, blocked_comm, 1, &test_rank, &one,
           &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0)
CONSTRUCTS(dist_graph_create_adjacent, make_two_before, Dist_graph_create_adjacent, blocked_comm, 1,
           &last, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0)
/* Rank 0 waits for the other leader, and for its own. */
CONSTRUCTS(intercomm_create_leader, NULL, Intercomm_create, halves, 0, blocked_comm,
           1 - test_rank % 2, 7)
CONSTRUCTS(intercomm_create_member, NULL, Intercomm_create, halves, test_rank % 2 ? 0 : 1,
           blocked_comm, test_rank % 2 ? 2 : 1, 8)
CONSTRUCTS(intercomm_merge, make_two_of_inter, Intercomm_merge, inter, test_rank % 2)
CONSTRUCTS(intercomm_dup, make_two_of_inter, Comm_dup, inter)

BLOCKED(cart_create, .prepare = make_two_before, .in = "Cart_create")
{
    MPI_Comm comm, rows;
    OK(MPI_Cart_create(blocked_comm, 1, &test_size, &one, 0, &comm));
    OK(MPI_Cart_sub(comm, &one, &rows));
    use(&rows);
    use(&comm);
}

BLOCKED(graph_create, .prepare = make_two_before, .in = "Graph_create")
{
    MPI_Comm comm;
    int index[2] = {1, 2}, edges[2] = {1, 0};
    OK(MPI_Graph_create(blocked_comm, 2, index, edges, 0, &comm));
    if (comm != MPI_COMM_NULL)
        use(&comm);
}

#ifdef HAVE_MPI_COMM_CREATE_GROUP
/* The last rank is not in it, and does nothing. */
BLOCKED(create_group, .in = "Comm_create_group")
{
    MPI_Comm comm;
    MPI_Group all, group;
    int highest = test_size - 1;
    if (test_rank == highest)
        return;
    MPI_Comm_group(blocked_comm, &all);
    MPI_Group_excl(all, 1, &highest, &group);
    OK(MPI_Comm_create_group(blocked_comm, group, 5, &comm));
    MPI_Group_free(&group);
    MPI_Group_free(&all);
    use(&comm);
}
#endif

static MPI_Comm to_disconnect;

static void make_connected(void)
{
    MPI_Comm_dup(blocked_comm, &to_disconnect);
}

BLOCKED(disconnect, .prepare = make_connected)
{
    OK(MPI_Comm_disconnect(&to_disconnect));
    EXPECT(to_disconnect == MPI_COMM_NULL, "not null");
}

/* Two processes of one job that connect as those of two jobs do. */
static char port[MPI_MAX_PORT_NAME];

static void open_port(void)
{
    if (test_rank == 0)
        OK(MPI_Open_port(MPI_INFO_NULL, port));
    OK(MPI_Bcast(port, sizeof port, MPI_CHAR, 0, blocked_comm));
}

static void connect(void)
{
    MPI_Comm comm;
    if (test_rank != 1)
        return;
    OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &comm));
    OK(MPI_Comm_disconnect(&comm));
}

BLOCKED(accept, .release = connect, .prepare = open_port, .test.if_named = true,
        .in = "Comm_accept")
{
    MPI_Comm comm;
    OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &comm));
    OK(MPI_Comm_disconnect(&comm));
    OK(MPI_Close_port(port));
}

static char *program; /* this one, which is also that of the new job */

BLOCKED(spawn, .test.if_named = true, .in = "Comm_spawn")
{
    MPI_Comm job;
    char *arguments[] = {"child", NULL};
    OK(MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, blocked_comm, &job,
                      MPI_ERRCODES_IGNORE));
    OK(MPI_Comm_disconnect(&job));
}

static int be_child(void)
{
    MPI_Comm parent;
    MPI_Init(NULL, NULL);
    MPI_Comm_get_parent(&parent);
    MPI_Comm_disconnect(&parent);
    return MPI_Finalize();
}

/* Rank 2 comes to the constructor when rank 0 has answered it in a collective, for which rank 0 has
 * to stay in nbcshim after the other leader has come. */
#if MPI_VERSION >= 3
TEST(late_member)
{
    MPI_Comm reduced, comm;
    MPI_Request request;
    int sum = 0;
    MPI_Info info = test_info("nbcshim_algorithm", "allreduce:reduce_bcast");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &reduced);
    MPI_Info_free(&info);
    if (test_rank == 2)
        usleep(50000);
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, reduced, &request);
    if (test_rank == 2)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    OK(MPI_Intercomm_create(halves, 0, MPI_COMM_WORLD, 1 - test_rank % 2, 9, &comm));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_INT(sum, test_size);
    use(&comm);
    MPI_Comm_free(&reduced);
}
#endif

static void begin(void)
{
    next = right();
    last = left();
    MPI_Comm_group(MPI_COMM_WORLD, &everybody);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &test_size, &one, 0, &cart);
    MPI_Comm_split(MPI_COMM_WORLD, test_rank % 2, 0, &halves);
    MPI_Intercomm_create(halves, 0, MPI_COMM_WORLD, 1 - test_rank % 2, 3, &inter);
    blocked_begin();
}

static void end(void)
{
    blocked_end();
    MPI_Group_free(&everybody);
    MPI_Comm_free(&cart);
    MPI_Comm_free(&halves);
    MPI_Comm_free(&inter);
}

AROUND_TESTS(begin, end)

int main(int argc, char **argv)
{
    program = argv[0];
    return argc > 1 && strcmp(argv[1], "child") == 0 ? be_child() : test_main(argc, argv);
}
