# p4est: a forest of quadtrees, refined towards a corner, balanced and partitioned; its ghosts and nodes.
packages="libp4est-dev" mpi=openmpi ranks=4
gain="nothing: blocking allgathers and messages; its mesh changes seldom"
prepare()
{
    cat >forest.c <<'END'
#include <p4est_bits.h>
#include <p4est_ghost.h>
#include <p4est_lnodes.h>
static int near(p4est_t *f, p4est_topidx_t tree, p4est_quadrant_t *q)
{
    (void)f;
    return q->level < 7 && (tree + p4est_quadrant_child_id(q)) % 3 == 0;
}
int main(int argc, char **argv)
{
    sc_MPI_Init(&argc, &argv);
    sc_init(sc_MPI_COMM_WORLD, 0, 0, NULL, SC_LP_SILENT);
    p4est_init(NULL, SC_LP_SILENT);
    p4est_connectivity_t *c = p4est_connectivity_new_moebius();
    p4est_t *f = p4est_new(sc_MPI_COMM_WORLD, c, 0, NULL, NULL);
    p4est_refine(f, 1, near, NULL);
    p4est_partition(f, 0, NULL);
    p4est_balance(f, P4EST_CONNECT_FULL, NULL);
    p4est_partition(f, 0, NULL);
    p4est_ghost_t *g = p4est_ghost_new(f, P4EST_CONNECT_FULL);
    p4est_lnodes_t *n = p4est_lnodes_new(f, g, 2);
    unsigned sum = p4est_checksum(f), ghosts = p4est_ghost_checksum(f, g);
    long nodes = n->owned_count, all;
    MPI_Allreduce(&nodes, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (f->mpirank == 0)
        printf("%ld %u %u %ld\n", (long)f->global_num_quadrants, sum, ghosts, all);
    p4est_lnodes_destroy(n);
    p4est_ghost_destroy(g);
    p4est_destroy(f);
    p4est_connectivity_destroy(c);
    sc_finalize();
    sc_MPI_Finalize();
}
END
    $CC -O1 -o forest forest.c -lp4est -lsc
}
command_line="./forest"
