# MPI tests: test/mpi/NAME.c becomes up to three programs. NAME.preload knows nothing of the library
# and may lack functions that the MPI does not have: LD_PRELOAD brings them. NAME.link and NAME.static
# are linked with it. A new test needs its name here and a line in test/mpi/tests.list, which says
# which of the three are run; the others are not built.

mpi_tests = \
	by_mpi callbacks callbacks_threads collectives devices digits dynamic errors exhausted faults forms fuzz idup inter large lengths lifetimes local_calls locality many matching \
	matrix neighbors nomem orders \
	progress progress_comms progress_files progress_hook progress_thread \
	progress_windows ranges \
	requests requests_arrays requests_long requests_threads sessions shared simulated traps \
	waits
mpi_common = \
	batch blocked cases completion device kinds layouts library observe predefined program sides topology \
	util
fuzz_parts = fuzz_attributes fuzz_comms fuzz_gone fuzz_messages fuzz_others fuzz_shared

shell_programs = $(patsubst %,test/mpi/%.preload,collectives dynamic faults fuzz lengths \
	orders progress progress_thread requests requests_arrays sessions)
# What run.sh runs of the list, under NBC_TESTS, NBC_SKIP and NBC_FAST, and what shell tests run.
mpi_needed := $(shell NBC_TESTS='$(value NBC_TESTS)' NBC_SKIP='$(value NBC_SKIP)' \
	NBC_FAST='$(value NBC_FAST)' $(srcdir)/test/mpi/run.sh --programs) \
	$(shell_programs)
check_DATA += $(sort $(filter $(mpi_tests:%=test/mpi/%.preload) $(mpi_tests:%=test/mpi/%.link) \
	$(mpi_tests:%=test/mpi/%.static),$(mpi_needed)))

# A linked program has the objects of the preloaded one and common/strong.o. The compiler writes down what each
# object depends on. With -Og it takes half the time; those with -O2 have the loops over bytes.
optimization = -Og
$(foreach f,cases inter kinds large layouts sides util,test/mpi/plain/$f.o): optimization = -O2
mpi_flags = $(DEFS) -I. -I$(srcdir)/include -iquote $(srcdir)/test/mpi/common -iquote $(srcdir)/src \
	$(MPI_CPPFLAGS) $(MPI_PROGRAM_CPPFLAGS) $(CPPFLAGS) $(AM_CFLAGS) $(CFLAGS) $(optimization)
mpi_compile = $(AM_V_CC)$(MKDIR_P) $(@D) && $(CC) $(mpi_flags) -MMD -MP
mpi_plain_link = $(CC) $(AM_CFLAGS) $(CFLAGS) $(AM_LDFLAGS) $(LDFLAGS)
mpi_link = $(AM_V_CCLD)$(LIBTOOL) $(AM_V_lt) --tag=CC --mode=link $(mpi_plain_link)

test/mpi/plain/%.o: test/mpi/%.c
	$(mpi_compile) -c -o $@ $<
test/mpi/plain/%.o: test/mpi/common/%.c
	$(mpi_compile) -c -o $@ $<

test/mpi/%.preload: test/mpi/plain/%.o $(mpi_common:%=test/mpi/plain/%.o)
	$(AM_V_CCLD)$(mpi_plain_link) -Wl,--unresolved-symbols=ignore-in-object-files -o $@ $^ $(MPI_LIBS) $(LIBS)
# Linked again only where the archive is in the program; a shared library is found at run time.
shared_library = lib@NBC_NAME@.la
linked_common = $(mpi_common:%=test/mpi/plain/%.o) test/mpi/plain/strong.o
test/mpi/%.link: test/mpi/plain/%.o $(linked_common) | $(shared_library)
	$(mpi_link) -no-install -o $@ $^ lib@NBC_NAME@.la $(MPI_LIBS) $(LIBS)
test/mpi/%.static: test/mpi/plain/%.o $(linked_common) lib@NBC_NAME@.la
	$(mpi_static)

# A simulated MPI loads a program once for each rank: as a shared object, in which the names of MPI
# mean nbcshim's functions first.
if SIMULATED
mpi_static = $(AM_V_CCLD)$(mpi_plain_link) -shared -o $@ \
	$(filter %.o,$^) -Wl,-Bsymbolic,--whole-archive .libs/lib@NBC_NAME@.a -Wl,--no-whole-archive \
	$(MPI_LIBS) $(LIBS)
else
mpi_static = $(mpi_link) -static -o $@ $^ $(MPI_LIBS) $(LIBS)
endif

test/mpi/fuzz.preload test/mpi/fuzz.link test/mpi/fuzz.static: $(fuzz_parts:%=test/mpi/plain/%.o)

-include $(wildcard test/mpi/plain/*.d)
.SECONDARY:

# Look-alikes of the runtimes of devices, which test programs load.
device_flags = -shared -fPIC -pthread $(CPPFLAGS) $(AM_CFLAGS) $(CFLAGS) $(AM_LDFLAGS) $(LDFLAGS)
device_runtimes = test/device/libcuda.so.1 test/device/libamdhip64.so.6 test/device/libze_loader.so.1 \
	test/device/lacking/libcuda.so.1 test/device/aware.so test/mpi/by_mpi.rules
check_DATA += $(device_runtimes)
CLEANFILES += $(device_runtimes)
test/device/libcuda.so.1: test/device/runtime.c
	$(AM_V_CCLD)$(MKDIR_P) $(@D) && $(CC) $(device_flags) -Wl,-soname,$(@F) -o $@ $<
test/device/libamdhip64.so.6: test/device/runtime.c
	$(AM_V_CCLD)$(MKDIR_P) $(@D) && $(CC) -DHIP $(device_flags) -Wl,-soname,$(@F) -o $@ $<
test/device/libze_loader.so.1: test/device/level_zero.c test/device/runtime.c
	$(AM_V_CCLD)$(MKDIR_P) $(@D) && $(CC) $(device_flags) -Wl,-soname,$(@F) -o $@ $<
test/device/aware.so: test/device/aware.c test/tools/below.h
	$(AM_V_CCLD)$(MKDIR_P) $(@D) && $(CC) $(mpi_flags) $(device_flags) -o $@ $< -ldl
# Leave to the MPI what it can carry out.
test/mpi/by_mpi.rules: src/algs.def
	$(AM_V_GEN)awk -F '[(, ]+' '/^ALG.*NBC_BY_MPI/ { print tolower($$2), "* * mpi" }' $< >$@
# It lacks a function.
test/device/lacking/libcuda.so.1: test/device/runtime.c
	$(AM_V_CCLD)$(MKDIR_P) $(@D) && $(CC) -DcuStreamWaitEvent=nbc_lacking $(device_flags) -Wl,-soname,$(@F) -o $@ $<

# The same programs on a GPU, if there is one, or with the runtime that NBC_DEVICE_LIBRARY names. NBC_VARIABLES: for
# nbcshim.
.PHONY: check-device
check-device:
	$(AM_V_at)why=$${NBC_DEVICE_LIBRARY:-`$(srcdir)/test/device/check`} || { echo "check-device: not run: $$why"; exit 0; }; \
	NBC_DEVICE_LIBRARY=$$why NBC_VARIABLES="NBCSHIM_LEVEL_ZERO=1 $$NBC_VARIABLES" && \
	export NBC_DEVICE_LIBRARY NBC_VARIABLES && \
	$(MAKE) check-one TEST='^(collectives|fuzz|lengths).*NBC_DEVICE=[a-z]* NBCSHIM_BLOCKING=own$$$$'

check_LTLIBRARIES += test/mpi/yield.la
test_mpi_yield_la_SOURCES = test/mpi/yield.c
test_mpi_yield_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere

EXTRA_DIST += $(mpi_tests:%=test/mpi/%.c) $(fuzz_parts:%=test/mpi/%.c) \
	$(mpi_common:%=test/mpi/common/%.c) $(mpi_common:%=test/mpi/common/%.h) test/mpi/common/strong.c
