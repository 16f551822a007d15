# src/: the collectives without MPI.

# A library of its own, compiled without the MPI's flags; the unit tests link it alone.

noinst_LTLIBRARIES += libnbc_core.la
# Libtool makes archives that are not installed of the objects for shared libraries alone: it need not compile
# others.
if SHARED
once_compiled = --tag=disable-static
endif
libnbc_core_la_LIBTOOLFLAGS = $(once_compiled)
libnbc_core_la_CPPFLAGS = -iquote $(srcdir)/src
libnbc_core_la_CFLAGS = $(AM_CFLAGS) -Wmissing-prototypes
libnbc_core_la_SOURCES = \
	src/fast_network.c src/fast_network.h \
	src/alg_allgather.c \
	src/alg_allreduce.c \
	src/alg_alltoall.c \
	src/alg_barrier.c \
	src/alg_bcast.c \
	src/alg_gather_scatter.c \
	src/alg_hierarchical.c \
	src/alg_inter.c \
	src/alg_neighbor.c \
	src/alg_reduce.c \
	src/alg_reduce_scatter.c \
	src/alg_scan.c \
	src/alg_two_rounds.c \
	src/alg_via_root.c \
	src/algs.def \
	src/block.c src/block.h \
	src/bytes.c src/bytes.h \
	src/circulant.c src/circulant.h \
	src/coll.c src/coll.h src/colls.def \
	src/exec.c src/exec.h src/exec_over.h \
	src/hash.h \
	src/reduction.c src/reduction.h \
	src/json.c src/json.h \
	src/kernel.c src/kernel.h \
	src/nodes.c src/nodes.h \
	src/pattern.c src/pattern.h \
	src/ranges.c src/ranges.h \
	src/sched.c src/sched.h \
	src/staged.c src/staged.h \
	src/subcollective.c src/subcollective.h \
	src/ring.h \
	src/rules.c src/rules.h \
	src/select.c src/select.h \
	src/topo.c src/topo.h \
	src/transport.h \
	src/tuning.c src/tuning.def
