# Unit tests: programs of one file each, test/unit/NAME.c, linked with the core and the helpers.

unit_tests = \
	test/unit/test_algs \
	test/unit/test_block \
	test/unit/test_coll \
	test/unit/test_cost \
	test/unit/test_exec \
	test/unit/test_json \
	test/unit/test_kernel \
	test/unit/test_loggp \
	test/unit/test_nomem \
	test/unit/test_pattern \
	test/unit/test_ranges \
	test/unit/test_ring \
	test/unit/test_ring_model \
	test/unit/test_rules \
	test/unit/test_sched \
	test/unit/test_select \
	test/unit/test_topo \
	test/unit/test_uses
check_LTLIBRARIES += test/unit/libunit.la
check_PROGRAMS += test/tools/instructions
if HAVE_CHECK
check_PROGRAMS += $(unit_tests)
endif

test_unit_libunit_la_LIBTOOLFLAGS = $(once_compiled)
test_unit_libunit_la_CPPFLAGS = -iquote $(srcdir)/src -iquote $(srcdir)/tools $(CHECK_CFLAGS)
test_unit_libunit_la_SOURCES = \
	test/unit/cases.c test/unit/cases.h \
	test/unit/count.c test/unit/count.h \
	test/unit/parts.c test/unit/parts.h \
	test/unit/results.c \
	test/unit/sched_check.c test/unit/sched_check.h \
	test/unit/sim.c test/unit/sim.h \
	test/unit/unit.c test/unit/unit.h \
	tools/sched_print.c tools/sched_print.h

test_unit_test_loggp_CPPFLAGS = $(AM_CPPFLAGS) -iquote $(srcdir)/tools/nbcsim
test_unit_test_loggp_LDADD = libnbcsim.la $(LDADD) -lm

test_unit_test_uses_SOURCES = test/unit/test_uses.c test/unit/uses.def

# Its allocations fail when it says so.
test_unit_test_nomem_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc

AM_CPPFLAGS = -iquote $(srcdir)/src -iquote $(srcdir)/test/unit -iquote $(srcdir)/tools $(CHECK_CFLAGS)
LDADD = test/unit/libunit.la libnbc_core.la $(CHECK_LIBS)
