/* SPDX-License-Identifier: MIT */
/* Processes that are started apart and meet: collectives between them, and of both together, are
 * ours on both sides; a rank that waits in MPI_Comm_spawn takes part in what it has started.
 *
 * Debian's MPICH 4.0.2 can neither spawn nor connect: there the program says so, and tests nothing.
 */
#include "blocked.h"
#include "config.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CHILDREN = 2 };

#define OTHER_TAGS "--other-tags"
#define UNHOOKED "--unhooked"
#define PROBE "--probe"

static char *program_name;
static bool has_processes; /* this is a parent, and the MPI can start processes */
static bool has_ports;     /* it can connect them, too */

static bool can_spawn(void)
{
    return has_processes;
}

static bool can_connect(void)
{
    return has_processes && has_ports;
}

/* A communicator is ours when it has the attribute, of which this is the value; NULL: it is not. */
static const int *outstanding_of(MPI_Comm comm)
{
    int *outstanding = NULL, flag = 0;
    if (!test_native)
        OK(MPI_Comm_get_attr(comm, MPI_ICOLL_MAX_OUTSTANDING, &outstanding, &flag));
    return flag ? outstanding : NULL;
}

/* With NBCSHIM_DYNAMIC=0 none here is. */
static void expect_ours(MPI_Comm comm, const char *which)
{
    const char *dynamic = getenv("NBCSHIM_DYNAMIC");
    const int *outstanding = outstanding_of(comm);
    if (test_native)
        return;
    if (dynamic && strcmp(dynamic, "0") == 0)
        EXPECT(!outstanding, "%s: ours, in spite of NBCSHIM_DYNAMIC=0", which);
    else
        EXPECT(outstanding && *outstanding >= 32767, "%s: not ours", which);
}

/* Where it is not ours, an MPI-2.2 has blocking collectives only. */
static bool has_nonblocking(MPI_Comm comm)
{
#ifdef HAVE_MPI_IALLREDUCE
    (void)comm;
    return true;
#else
    return outstanding_of(comm);
#endif
}

static void add_up(MPI_Comm comm, int expected, const char *which)
{
    MPI_Request request[2];
    int one = 1, sum = 0;
    if (!has_nonblocking(comm)) {
        OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
        EXPECT_INT(sum, expected, "%s", which);
        return;
    }
    OK(MPI_Ibarrier(comm, &request[0]));
    OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request[1]));
    OK(MPI_Waitall(2, request, MPI_STATUSES_IGNORE));
    EXPECT_INT(sum, expected, "%s", which);
}

/* The jobs may know different things of their nodes, and none of the other's. */
static void persistent_ring(MPI_Comm comm)
{
    MPI_Comm ring;
    MPI_Request request;
    int rank, size, periodic = 1, in[2], out[2] = {-1, -1};
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    if (!test_has_persistent())
        return;
    in[0] = in[1] = rank;
    OK(MPI_Cart_create(comm, 1, &size, &periodic, 0, &ring));
    OK(MPI_Neighbor_alltoall_init(in, 1, MPI_INT, out, 1, MPI_INT, ring, MPI_INFO_NULL, &request));
    OK(MPI_Start(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT_INT(out[0], (rank + size - 1) % size);
    EXPECT_INT(out[1], (rank + 1) % size);
    OK(MPI_Request_free(&request));
    OK(MPI_Comm_free(&ring));
}

/* MPI_Comm_disconnect waits for what is pending, and for the other side, which waits first. Open
 * MPI 4.1.4 itself hangs there. */
static void disconnect_while_pending(MPI_Comm *inter, int expected, int high)
{
    enum { BIG = 100000 };
    bool ours = outstanding_of(*inter);
    MPI_Request request = MPI_REQUEST_NULL;
    int *in = test_alloc(BIG * sizeof *in), *sum = test_alloc(BIG * sizeof *sum), wrong = 0;
    for (int i = 0; i < BIG; i++)
        in[i] = 1;
    if (ours)
        OK(MPI_Iallreduce(in, sum, BIG, MPI_INT, MPI_SUM, *inter, &request));
    if (high)
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Comm_disconnect(inter));
    for (int i = 0; i < BIG; i++)
        wrong += sum[i] != expected;
    EXPECT(!ours || wrong == 0, "%d sums are wrong after the end", wrong);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    free(in);
    free(sum);
}

/* The same calls on both sides. */
static void use(MPI_Comm *inter, int high)
{
    MPI_Comm both;
    int here, there;
    MPI_Comm_size(*inter, &here);
    MPI_Comm_remote_size(*inter, &there);
    expect_ours(*inter, "between them");
    add_up(*inter, there, "between them");
    OK(MPI_Intercomm_merge(*inter, high, &both));
    expect_ours(both, "together");
    add_up(both, here + there, "together");
    if (outstanding_of(both))
        persistent_ring(both);
    OK(MPI_Comm_free(&both));
    disconnect_while_pending(inter, there, high);
}

BLOCKED(spawn, .test.wanted = can_spawn)
{
    MPI_Comm inter;
    OK(MPI_Comm_spawn(program_name, MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0, blocked_comm, &inter,
                      MPI_ERRCODES_IGNORE));
    use(&inter, 0);
}

/* Children with other settings: what is between the two is the MPI's own, on both sides. */
static void use_apart(MPI_Comm *inter)
{
    int there;
    MPI_Comm both;
    MPI_Comm_remote_size(*inter, &there);
    EXPECT(!outstanding_of(*inter), "ours, in spite of other settings");
    add_up(*inter, there, "apart");
    OK(MPI_Intercomm_merge(*inter, 0, &both));
    OK(MPI_Barrier(both));
    OK(MPI_Comm_free(&both));
    OK(MPI_Comm_disconnect(inter));
}

static void spawn_apart(char *option)
{
    MPI_Comm inter;
    char *arguments[] = {option, NULL};
    OK(MPI_Comm_spawn(program_name, arguments, CHILDREN, MPI_INFO_NULL, 0, blocked_comm, &inter,
                      MPI_ERRCODES_IGNORE));
    use_apart(&inter);
}

BLOCKED(spawn_others, .test.wanted = can_spawn)
{
    char option[] = OTHER_TAGS;
    spawn_apart(option);
}

/* With NBCSHIM_BLOCKING=native only the barriers before calls that wait for other processes depend
 * on the hook. */
BLOCKED(spawn_unhooked, .test.wanted = can_spawn, .test.if_named = true)
{
    char option[] = UNHOOKED;
    spawn_apart(option);
}

/* mpiexec of Open MPI 5.0.10 crashes with the PMIx of Ubuntu 26.04. */
static bool can_spawn_several(void)
{
    const char *pmix = getenv("PMIX_VERSION");
    return has_processes && !(pmix && strncmp(pmix, "5.0.9", 5) == 0);
}

BLOCKED(spawn_multiple, .test.wanted = can_spawn_several)
{
    MPI_Comm inter;
    char *commands[2] = {program_name, program_name};
    int counts[2] = {1, 1};
    MPI_Info infos[2] = {MPI_INFO_NULL, MPI_INFO_NULL};
    OK(MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, counts, infos, 0, blocked_comm, &inter,
                               MPI_ERRCODES_IGNORE));
    use(&inter, 0);
}

BLOCKED(accept_and_connect, .test.wanted = can_connect)
{
    MPI_Comm half, inter;
    char port[MPI_MAX_PORT_NAME] = "";
    int low = test_rank < test_size / 2;
    OK(MPI_Comm_split(blocked_comm, low, 0, &half));
    if (test_rank == 0)
        OK(MPI_Open_port(MPI_INFO_NULL, port));
    OK(MPI_Bcast(port, sizeof port, MPI_CHAR, 0, blocked_comm));
    if (low)
        OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter));
    else
        OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter));
    use(&inter, low);
    if (test_rank == 0)
        OK(MPI_Close_port(port));
    OK(MPI_Comm_free(&half));
}

/* A connection between ranks 0 and 1. */
static int connection(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0), connected = fd;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (test_rank == 0) {
        EXPECT_INT(bind(fd, (struct sockaddr *)&address, length), 0);
        EXPECT_INT(listen(fd, 1), 0);
        EXPECT_INT(getsockname(fd, (struct sockaddr *)&address, &length), 0);
        OK(MPI_Send(&address.sin_port, sizeof address.sin_port, MPI_BYTE, 1, 4, MPI_COMM_WORLD));
        connected = accept(fd, NULL, NULL);
        close(fd);
    } else {
        OK(MPI_Recv(&address.sin_port, sizeof address.sin_port, MPI_BYTE, 0, 4, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
        EXPECT_INT(connect(fd, (struct sockaddr *)&address, length), 0);
    }
    return connected;
}

TEST(join, .wanted = can_connect)
{
    MPI_Comm inter;
    if (test_rank > 1 || test_size < 2)
        return;
    int fd = connection();
    OK(MPI_Comm_join(fd, &inter));
    close(fd);
    use(&inter, test_rank);
}

static void ask_for_processes(void)
{
    char option[] = PROBE, *arguments[] = {option, NULL};
    MPI_Comm inter;
    int can = 0;
    if (test_rank == 0) {
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        can = !MPI_Comm_spawn(program_name, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter,
                              MPI_ERRCODES_IGNORE);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
        if (can)
            OK(MPI_Comm_disconnect(&inter));
        else
            printf("this MPI cannot start processes\n");
    }
    OK(MPI_Bcast(&can, 1, MPI_INT, 0, MPI_COMM_WORLD));
    has_processes = can;
}

/* The address of a process may be too long for the name of a port: MPICH 4.3.2 over UCX 1.20. */
static void ask_for_a_port(void)
{
    char port[MPI_MAX_PORT_NAME];
    int can = 0;
    if (test_rank == 0) {
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        can = !MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
        if (can)
            OK(MPI_Close_port(port));
        else
            printf("this MPI has no ports\n");
    }
    OK(MPI_Bcast(&can, 1, MPI_INT, 0, MPI_COMM_WORLD));
    has_ports = can;
}

static void begin(void)
{
    MPI_Comm parent;
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL)
        use(&parent, 1);
    else
        ask_for_processes();
    if (has_processes)
        ask_for_a_port();
    blocked_begin();
}

AROUND_TESTS(begin, blocked_end)

/* A child with other settings. */
static int run_apart(int argc, char **argv)
{
    MPI_Comm parent;
    if (strcmp(argv[1], OTHER_TAGS) == 0)
        setenv("NBCSHIM_TEST", "tag_ub=1000", 1);
    if (strcmp(argv[1], UNHOOKED) == 0)
        setenv("NBCSHIM_HOOK", "off", 1);
    test_init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (strcmp(argv[1], PROBE) == 0)
        OK(MPI_Comm_disconnect(&parent));
    else
        use_apart(&parent);
    return test_done();
}

int main(int argc, char **argv)
{
    const char *option = argc > 1 ? argv[1] : "";
    program_name = argv[0];
    if (strcmp(option, OTHER_TAGS) == 0 || strcmp(option, UNHOOKED) == 0 ||
        strcmp(option, PROBE) == 0)
        return run_apart(argc, argv);
    return test_main(argc, argv);
}
