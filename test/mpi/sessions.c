/* SPDX-License-Identifier: MIT */
/* Programs that open sessions, without MPI_Init (argument "only", the default) or beside it:
 * "before" and "behind" say where the sessions end, before MPI_Finalize or behind it; "self":
 * without MPI_Init, and with no communicator but of this process alone. (MPICH 4.0.2 crashes in a
 * program of one rank without MPI_Init, natively too.) */
#include "config.h"
#include "util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_MPI_SESSION_INIT
#include <dirent.h>

/* Reductions that the MPI carries out: Open MPI 5.0.11 crashes in MPI_Reduce_local before
 * MPI_Init. */
static void reduce(MPI_Comm comm, int expected)
{
    MPI_Request request[4];
    MPI_Op op;
    int one = 1, sum = 0, any = 0, pair[2] = {7, 3}, most[2] = {0};
    long double part = 0.5L, total = 0;
    OK(MPI_Op_create(add_ints, 1, &op));
    OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, op, comm, &request[0]));
    OK(MPI_Op_free(&op));
    OK(MPI_Iallreduce(pair, most, 1, MPI_2INT, MPI_MAXLOC, comm, &request[1]));
    OK(MPI_Iallreduce(&part, &total, 1, MPI_LONG_DOUBLE, MPI_SUM, comm, &request[2]));
    OK(MPI_Iallreduce(&one, &any, 1, MPI_INT, MPI_LAND, comm, &request[3]));
    OK(MPI_Waitall(4, request, MPI_STATUSES_IGNORE));
    CHECK(sum == expected && most[0] == 7 && most[1] == 3 && any == 1);
    CHECK(total == expected * part);
}

static void use(MPI_Comm comm, int expected)
{
    MPI_Request request[2];
    int *outstanding = NULL, flag = 0, one = 1, sum = 0;
    OK(MPI_Comm_get_attr(comm, MPI_ICOLL_MAX_OUTSTANDING, &outstanding, &flag));
    CHECK(flag && *outstanding >= 32767);
    OK(MPI_Ibarrier(comm, &request[0]));
    OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request[1]));
    OK(MPI_Waitall(2, request, MPI_STATUSES_IGNORE));
    EXPECT_INT(sum, expected);
    reduce(comm, expected);
}

/* Collectives on a communicator of all, on one made from it, and between two groups. */
static int use_session(MPI_Session session, const char *tag, int *size)
{
    MPI_Group world, one;
    MPI_Comm all, copy, inter;
    int rank, n, zero = 0;
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &world));
    OK(MPI_Comm_create_from_group(world, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &all));
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &n);
    use(all, n);
    OK(MPI_Comm_dup(all, &copy));
    use(copy, n);
    OK(MPI_Comm_free(&copy));
    if (n > 1) {
        MPI_Group rest;
        char name[64];
        snprintf(name, sizeof name, "%s-inter", tag);
        OK(MPI_Group_incl(world, 1, &zero, &one));
        OK(MPI_Group_excl(world, 1, &zero, &rest));
        OK(MPI_Intercomm_create_from_groups(rank ? rest : one, 0, rank ? one : rest, 0, name,
                                            MPI_INFO_NULL, MPI_ERRORS_RETURN, &inter));
        use(inter, rank ? 1 : n - 1);
        OK(MPI_Comm_free(&inter));
        OK(MPI_Group_free(&one));
        OK(MPI_Group_free(&rest));
    }
    OK(MPI_Comm_free(&all));
    OK(MPI_Group_free(&world));
    *size = n;
    return rank;
}

/* Of nbcshim in this process: the MPI may leave some of its own. -1 where nobody tells. */
static int count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int n = 0;
    if (!tasks)
        return -1;
    for (const struct dirent *task; (task = readdir(tasks));) {
        char path[300], name[16] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *f = fopen(path, "r");
        if (!f)
            continue;
        n += fgets(name, sizeof name, f) && strcmp(name, "nbcshim\n") == 0;
        fclose(f);
    }
    closedir(tasks);
    return n;
}

static MPI_Comm make_all(MPI_Session session, const char *tag)
{
    MPI_Group world;
    MPI_Comm all;
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &world));
    OK(MPI_Comm_create_from_group(world, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &all));
    OK(MPI_Group_free(&world));
    return all;
}

/* Operations of a session that are pending outlive MPI_Finalize. */
static void finalize_beside(MPI_Session session, int size)
{
    MPI_Comm kept = make_all(session, "kept");
    MPI_Request request;
    int one = 1, sum = 0;
    OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, kept, &request));
    OK(MPI_Finalize());
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT_INT(sum, size);
    use(kept, size);
    OK(MPI_Comm_free(&kept));
}

/* MPI_Finalize deletes the attributes of MPI_COMM_SELF; MPICH 4.0.2 does so in the end of the last
 * session, if that comes later. Before that, the MPI is not finalized. */
static bool attributes_deleted;

static int on_end(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval, (void)value, (void)extra;
    attributes_deleted = true;
    return MPI_SUCCESS;
}

static void watch_end(void)
{
    int keyval;
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_end, &keyval, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL));
    OK(MPI_Comm_free_keyval(&keyval));
}

/* A call that fails ends no session. */
static void finalize_none(void)
{
    MPI_Session none = MPI_SESSION_NULL;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK(MPI_Session_finalize(&none) != MPI_SUCCESS);
}

static int run_way(const char *way)
{
    MPI_Session first, second;
    int n, rank, only = strcmp(way, "only") == 0, before = strcmp(way, "before") == 0;
    int threads = count_threads();
    if (!only) {
        OK(MPI_Init(NULL, NULL));
        watch_end();
    }
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &first));
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &second));
    if (!only) {
        use(MPI_COMM_WORLD, (MPI_Comm_size(MPI_COMM_WORLD, &n), n));
        finalize_none();
    }
    rank = use_session(first, "first", &n);
    OK(MPI_Session_finalize(&first));
    if (!only && !before)
        finalize_beside(second, n);
    use_session(second, "second", &n);
    OK(MPI_Session_finalize(&second));
    if (before)
        OK(MPI_Finalize());
    CHECK(only || attributes_deleted);
    EXPECT_INT(count_threads(), threads);
    if (rank == 0)
        printf("ok %d ranks\n", n);
    return test_failures() > 0;
}

/* A session makes communicators before MPI_Init, and ends before MPI_Finalize or after it. */
static int run_around(bool ends_before)
{
    MPI_Session session;
    MPI_Comm all;
    int n;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    use_session(session, "first", &n);
    all = make_all(session, "all");
    OK(MPI_Init(NULL, NULL));
    watch_end();
    use(MPI_COMM_WORLD, n);
    use(all, n);
    if (!ends_before)
        finalize_beside(session, n);
    use(all, n);
    OK(MPI_Comm_free(&all));
    OK(MPI_Session_finalize(&session));
    if (ends_before) {
        use(MPI_COMM_WORLD, n);
        OK(MPI_Finalize());
    }
    CHECK(attributes_deleted);
    return test_failures() > 0;
}

/* Messages of a process to itself. Without a communicator of several processes MPICH 4.0.2 crashes
 * in any poll: in MPI_Test and MPI_Waitsome, but in no call that is made here. */
static void send_to_self(MPI_Comm comm)
{
    MPI_Request r[3];
    int out = 5, in[5] = {0}, flag = 0;
    OK(MPI_Irecv(&in[0], 1, MPI_INT, 0, 0, comm, &r[0]));
    OK(MPI_Send(&out, 1, MPI_INT, 0, 0, comm));
    OK(MPI_Request_get_status(r[0], &flag, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&r[0], MPI_STATUS_IGNORE));
    OK(MPI_Isend(&out, 1, MPI_INT, 0, 1, comm, &r[0]));
    OK(MPI_Probe(0, 1, comm, MPI_STATUS_IGNORE));
    OK(MPI_Recv(&in[1], 1, MPI_INT, 0, 1, comm, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&r[0], MPI_STATUS_IGNORE));
    OK(MPI_Sendrecv(&out, 1, MPI_INT, 0, 2, &in[2], 1, MPI_INT, 0, 2, comm, MPI_STATUS_IGNORE));
    OK(MPI_Irecv(&in[3], 1, MPI_INT, 0, 3, comm, &r[0]));
    OK(MPI_Ibarrier(comm, &r[1]));
    OK(MPI_Isend(&out, 1, MPI_INT, 0, 3, comm, &r[2]));
    OK(MPI_Waitall(3, r, MPI_STATUSES_IGNORE));
    OK(MPI_Irecv(&in[4], 1, MPI_INT, 0, 4, comm, &r[0]));
    OK(MPI_Isend(&out, 1, MPI_INT, 0, 4, comm, &r[1]));
    OK(MPI_Ibarrier(comm, &r[2]));
    for (int i = 0, index; i < 3; i++)
        OK(MPI_Waitany(3, r, &index, MPI_STATUS_IGNORE));
    for (int i = 0; i < 5; i++)
        EXPECT_INT(in[i], out);
}

/* No communicator has the ranks of MPI_COMM_WORLD. */
static int run_alone(void)
{
    MPI_Session session;
    MPI_Group self;
    MPI_Comm comm, copy;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Group_from_session_pset(session, "mpi://SELF", &self));
    OK(MPI_Comm_create_from_group(self, "self", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    send_to_self(comm);
    use(comm, 1);
    OK(MPI_Comm_dup(comm, &copy));
    use(copy, 1);
    send_to_self(copy);
    OK(MPI_Comm_free(&copy));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Group_free(&self));
    OK(MPI_Session_finalize(&session));
    return test_failures() > 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "self") == 0)
        return run_alone();
    if (argc > 1 && strncmp(argv[1], "around", 6) == 0)
        return run_around(strcmp(argv[1], "around-first") == 0);
    return run_way(argc > 1 ? argv[1] : "only");
}
#else
int main(int argc, char **argv)
{
    test_init(&argc, &argv);
    return test_done();
}
#endif
