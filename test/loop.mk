# While you work: some tests, one test, the warnings of another compiler, faults, coverage.

# What to run before each commit: of these tests all cases, of the MPI programs those that
# test/mpi/tests.list marks as fast. Every algorithm runs in test_exec and test_sched; test_algs, which
# takes a minute, is left out.
fast_tests = $(filter-out test/unit/test_algs,$(unit_tests)) \
	test/abi/header.sh test/abi/includes.sh test/abi/symbols.sh \
	test/tools/mismatch.sh test/tools/nbcrun.sh test/tools/pages.sh test/tools/stacking.sh test/mpi/run.sh
.PHONY: check-fast
check-fast:
	$(MAKE) check NBC_FAST=1 TESTS='$(fast_tests)' shell_programs=

# One test, of which only what it needs is built: TEST=test_sched, TEST=nbcrun, an algorithm
# (TEST=allreduce:ring); any other TEST is a REGEX over the names of MPI cases: make check-one
# TEST='requests, 4 ranks'; TEST=--failed repeats those that failed in the last run. Where a shell script
# and an MPI program have one name, it is the program's: TEST=tools/sessions is the script.
#
# These cases run with one/libnbcshim.so, since libtool compiles each file twice and makes the archive
# too; only where a program is linked with the archive everything is brought up to date.
.PHONY: check-one check-one-unit check-one-shell check-one-mpi
one_algorithm = $(if $(filter 1,$(words $(TEST))),$(if $(findstring :,$(TEST)),$(TEST)))
one_unit = $(filter %/$(if $(one_algorithm),test_algs,$(TEST)),$(unit_tests))
one_shell = $(filter test/$(TEST).sh $(if $(filter $(TEST),$(mpi_tests)),,%/$(TEST).sh test/$(TEST)/run.sh),$(shell_tests))
one_make = $(MAKE) --no-print-directory
check-one: $(if $(one_unit),check-one-unit,$(if $(one_shell),check-one-shell,check-one-mpi))
check-one-unit: $(one_unit)
	@$(LOG_COMPILER) $(one_unit) $(one_algorithm)
# Not "all", which is another make: both would link lib@NBC_NAME@.la at the same time.
check-one-shell: all-am $(check_LTLIBRARIES) $(device_runtimes) test/tools/instructions$(EXEEXT) \
		$(shell_programs)
	@$(AM_TESTS_ENVIRONMENT) $(srcdir)/$(one_shell)
check-one-mpi:
	+@test -n '$(value TEST)' || { echo "which? TEST='...'" >&2; exit 1; }; \
	export NBC_TESTS='$(value TEST)' NBC_LIBRARY=$(abs_builddir)/one/lib@NBC_NAME@.so.0; \
	programs=`$(srcdir)/test/mpi/run.sh --programs` || exit 1; \
	$(one_make) one/lib@NBC_NAME@.so.0 test/mpi/yield.la $(device_runtimes) || exit; \
	$(one_make) $(if $(wildcard lib@NBC_NAME@.la),shared_library=) $$programs || exit; \
	$(AM_TESTS_ENVIRONMENT) $(srcdir)/test/mpi/run.sh

one_objects = $(patsubst %.c,one/%.o,$(filter %.c,$(lib@NBC_NAME@_la_SOURCES)))
one/%.o: %.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(CC) $(DEFS) -I. $(lib@NBC_NAME@_la_CPPFLAGS) $(CPPFLAGS) \
	$(AM_CFLAGS) $(CFLAGS) -fPIC -DPIC -MMD -MP -c -o $@ $<
one/lib@NBC_NAME@.so.0: $(one_objects) libnbc_core.la libnbcshim.map
	$(AM_V_CCLD)$(CC) -shared $(AM_CFLAGS) $(CFLAGS) -o $@ $(one_objects) -Wl,--whole-archive \
	.libs/libnbc_core.a -Wl,--no-whole-archive $(AM_LDFLAGS) $(LDFLAGS) $(MPI_LIBS) $(LIBS) $(MPI_NEEDED) \
	$(NBC_SHARED_LDFLAGS) -Wl,--version-script=$(srcdir)/libnbcshim.map -Wl,-soname,$(@F)
-include $(wildcard $(one_objects:.o=.d))

# The warnings of another compiler, which makes nothing: make warnings CC=clang. Of the programs for MPI
# those that make check builds.
in_source = $(addprefix $(srcdir)/,$(filter %.c,$(1)))
built = $(PROGRAMS) $(check_PROGRAMS) $(LTLIBRARIES) $(check_LTLIBRARIES)
warnings_of_built = $(addprefix warnings-,$(subst /,_,$(subst .,_,$(built:$(EXEEXT)=))))
mpi_preloaded = $(addsuffix .c,$(basename $(filter %.preload,$(check_DATA))))
mpi_parts = $(mpi_common:%=test/mpi/common/%.c) test/mpi/common/strong.c $(fuzz_parts:%=test/mpi/%.c)
.PHONY: warnings warnings-mpi warnings-device warnings-mpi-preloaded $(warnings_of_built)
warnings: warnings-mpi-preloaded warnings-device $(warnings_of_built)
# What depends on the MPI. (Programs that it does not compile gcc does.)
warnings-mpi: warnings-lib@NBC_NAME@_la warnings-libnbcprofile_la
warnings-device:
	$(CC) -fsyntax-only $(AM_CFLAGS) $(CFLAGS) $(srcdir)/test/device/runtime.c
	$(CC) -fsyntax-only $(AM_CFLAGS) $(CFLAGS) $(srcdir)/test/device/level_zero.c
	$(CC) -fsyntax-only $(mpi_flags) $(srcdir)/test/device/aware.c
warnings-mpi-preloaded:
	$(CC) -fsyntax-only $(mpi_flags) $(call in_source,$(mpi_preloaded) $(mpi_parts))
$(warnings_of_built): warnings-%:
	$(CC) -fsyntax-only $(DEFS) $(DEFAULT_INCLUDES) $(or $($*_CPPFLAGS),$(AM_CPPFLAGS)) $(CPPFLAGS) \
	$(or $($*_CFLAGS),$(AM_CFLAGS)) $(CFLAGS) $(call in_source,$($*_SOURCES))

# Whether the tests notice faults: see test/mutate. MUTATE=--part=1/20 takes some of them.
.PHONY: mutate
mutate:
	$(MAKE) check TESTS=
	srcdir=$(srcdir) $(srcdir)/test/mutate $(MUTATE)

# Which lines of src/ and pmpi/ the tests run, in a tree of configure --enable-coverage: see
# test/uncovered. Left out are tests that build with other options, and those that look at the code
# which the compiler has made.
coverage_tests = $(filter-out test/text/run.sh test/mpi41/run.sh test/abi/symbols.sh \
	test/tools/instructions.sh,$(unit_tests) $(shell_tests) test/mpi/run.sh)
.PHONY: coverage
coverage:
	find . -name '*.gcda' -delete
	-$(MAKE) -k check TESTS='$(coverage_tests)'
	$(srcdir)/test/uncovered .
