# bench/: measuring.

# A simulated MPI runs only programs that are made for it.
if !SIMULATED
bin_PROGRAMS += bench/nbcbench
noinst_LTLIBRARIES += libnbcbench.la
endif

# What several programs measure with.
libnbcbench_la_CPPFLAGS = $(bench_nbcbench_CPPFLAGS)
libnbcbench_la_LIBTOOLFLAGS = $(once_compiled)
libnbcbench_la_SOURCES = \
	bench/cases.c bench/cases.h \
	bench/model.c bench/model.h \
	bench/native.c bench/native.def bench/native.h \
	bench/runner.c bench/runner.h \
	bench/sweep.c bench/sweep.h \
	tools/call.c tools/call.h \
	tools/emit.c tools/emit.h \
	tools/meter.c tools/meter.h \
	tools/picture.c tools/picture.h
bench_nbcbench_CPPFLAGS = -iquote $(srcdir)/bench -iquote $(srcdir)/test/mpi -iquote $(srcdir)/tools -iquote $(srcdir)/src -I$(srcdir)/include \
	$(MPI_CPPFLAGS)
bench_nbcbench_SOURCES = \
	bench/bench.h \
	bench/calls.c \
	bench/device.c \
	bench/nbcbench.c \
	bench/halo.c \
	bench/outstanding.c \
	bench/overlap.c \
	bench/routines.c bench/routines.def bench/routines.h \
	bench/time.c \
	bench/untouched.c \
	test/mpi/common/device.c test/mpi/common/device.h \
	tools/gnuplot.c tools/gnuplot.h \
	tools/plot.c tools/plot.h
bench_nbcbench_LDADD = libnbcbench.la lib@NBC_NAME@.la libnbc_core.la $(MPI_LIBS) -lm

dist_man_MANS += doc/nbcbench.1

EXTRA_DIST += \
	bench/compare bench/footprint bench/footprint.c \
	bench/pages bench/report.py bench/scaling bench/scaling_tables.py \
	bench/tables.py bench/virtual bench/virtual.c bench/virtual.py
