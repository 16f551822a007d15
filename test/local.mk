# test/: how tests run, and those that are scripts.

# All speak TAP, so that make check counts cases, not programs; a failed case is not counted again
# for the exit status.

TEST_EXTENSIONS = .sh
TAP_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh \
	--ignore-exit
LOG_DRIVER = $(TAP_DRIVER)
LOG_COMPILER = $(srcdir)/test/tap
SH_LOG_DRIVER = $(TAP_DRIVER)
AM_TESTS_ENVIRONMENT = LC_ALL=C; export LC_ALL;

TESTS = $(unit_tests) $(shell_tests) test/mpi/run.sh

# Shell tests, run in the build tree.

waiting_tests = \
	test/tools/agreement.sh \
	test/tools/hang.sh
# With make -j the longest first.
shell_tests = \
	$(waiting_tests) \
	test/text/run.sh \
	test/tools/nbcsim.sh \
	test/mpi41/run.sh \
	test/tools/nbcinfo.sh \
	test/tools/install.sh \
	test/abi/header.sh \
	test/abi/includes.sh \
	test/abi/symbols.sh \
	test/cures/run.sh \
	test/hosts/run.sh \
	test/tools/early.sh \
	test/tools/faults.sh \
	test/tools/fuzz.sh \
	test/tools/cmake.sh \
	test/tools/communicators.sh \
	test/tools/compare.sh \
	test/tools/completion.sh \
	test/tools/configure.sh \
	test/tools/examples.sh \
	test/tools/hook.sh \
	test/tools/inactive.sh \
	test/tools/revoked.sh \
	test/tools/instructions.sh \
	test/tools/jacobi.sh \
	test/tools/launcher.sh \
	test/tools/locale.sh \
	test/tools/lost.sh \
	test/tools/measure.sh \
	test/tools/mpich_suite.sh \
	test/tools/nbcc.sh \
	test/fortran/run.sh \
	test/tools/mismatch.sh \
	test/tools/nbcrun.sh \
	test/tools/nodes.sh \
	test/tools/order.sh \
	test/tools/other_mpi.sh \
	test/tools/pages.sh \
	test/tools/runner.sh \
	test/tools/selftest.sh \
	test/tools/sessions.sh \
	test/tools/stacking.sh \
	test/tools/statistics.sh \
	test/tools/sites.sh \
	test/tools/truth.sh \
	test/tools/testsome.sh \
	test/tools/trace.sh \
	test/tools/tuning.sh \
	test/tools/variables.sh

# What does not depend on the MPI: quickstart runs it on one.
once_tests = $(unit_tests) \
	test/abi/includes.sh \
	test/text/run.sh \
	test/tools/configure.sh \
	test/tools/early.sh \
	test/tools/fuzz.sh \
	test/tools/mpich_suite.sh \
	test/tools/nbcsim.sh \
	test/tools/pages.sh \
	test/tools/runner.sh
# What hardly does: stand-ins, and what nbcshim and its tools say. The other MPI has it in the soak.
mostly_once_tests = \
	test/mpi41/run.sh \
	test/tools/cmake.sh \
	test/tools/compare.sh \
	test/tools/completion.sh \
	test/tools/examples.sh \
	test/tools/faults.sh \
	test/tools/inactive.sh \
	test/tools/install.sh \
	test/tools/instructions.sh \
	test/tools/locale.sh \
	test/tools/measure.sh \
	test/tools/nbcinfo.sh \
	test/tools/nodes.sh \
	test/tools/selftest.sh \
	test/tools/sites.sh \
	test/tools/statistics.sh \
	test/tools/testsome.sh \
	test/tools/trace.sh \
	test/tools/truth.sh \
	test/tools/tuning.sh \
	test/tools/variables.sh

# With make -j tests run side by side, but those that look at times, and the one that itself runs cases
# side by side, run one after the other when the others are done, beside those alone that mostly wait.
alone_tests = \
	test/hosts/run.sh \
	test/tools/measure.sh \
	test/tools/trace.sh \
	test/mpi/run.sh
alone_logs := $(filter $(alone_tests:.sh=.log),$(TEST_LOGS))
other_logs := $(filter-out $(alone_logs),$(TEST_LOGS))
$(alone_logs): | $(filter-out $(waiting_tests:.sh=.log),$(other_logs))
$(foreach log,$(alone_logs),$(eval $(log): | $(before))$(eval before := $(log)))
# Of those that mostly wait one runs at a time, beside the others.
waiting_logs := $(filter $(waiting_tests:.sh=.log),$(TEST_LOGS))
$(foreach log,$(waiting_logs),$(eval $(log): | $(earlier))$(eval earlier := $(log)))
$(other_logs): AM_TESTS_ENVIRONMENT += NBC_BESIDE=1; export NBC_BESIDE;
# make runs the recipe of config.h each time, and puts off what waits for it: the unit tests, among them
# the longest test, which would then run at the end, alone. If all tests wait, all keep their places.
$(TEST_LOGS): | config.h test/settings

# What instructions.sh counts; a program and not a wrapper script of libtool.
test_tools_instructions_CPPFLAGS = $(bench_nbcbench_CPPFLAGS)
test_tools_instructions_SOURCES = \
	bench/routines.c bench/routines.def bench/routines.h \
	test/tools/instructions.c
test_tools_instructions_LDADD = $(bench_nbcbench_LDADD)
test_tools_instructions_LDFLAGS = $(AM_LDFLAGS) -no-install

EXTRA_DIST += $(shell_tests) $(programs:%=test/programs/%)
programs = \
	abinit.sh boost.sh coarrays.sh cp2k.sh dolfinx.sh espresso.sh fftw.sh gromacs.sh h5py.sh \
	hdf5.sh hpcc.sh lammps.sh meep.sh mpb.sh mpi4py.sh mumps.sh nwchem.sh p4est.sh petsc.sh \
	pnetcdf.sh run scalapack.sh slepc.sh spfft.sh stencil.sh trilinos.sh

mostlyclean-local:
	rm -rf one test/mpi/plain
	rm -f test/mpi/failed test/mpi/*.preload test/mpi/*.link test/mpi/*.static

EXTRA_DIST += \
	test/abi/mpi22.txt \
	test/all.sh test/soak.sh \
	test/costs \
	test/distribution \
	test/cures/cures.h test/cures/cures.list test/cures/ialltoallw.f90 test/cures/page \
	test/device/aware.c test/device/check test/device/cuda_runtime.h test/device/level_zero.c test/device/runtime.c \
	test/expect.h \
	test/fortran/binding.inc test/fortran/calls.inc test/fortran/collectives.F90 test/fortran/large.F90 \
	test/fortran/names.F90 test/fortran/native.F90 \
	test/fuzz \
	test/hosts/finalize.c test/hosts/hosts test/hosts/lost.c test/hosts/on test/hosts/switch.c \
	test/lib.sh \
	test/mpi/common/calls.def test/mpi/common/collectives.def test/mpi/common/each.def test/mpi/common/pieces.h test/mpi/common/predefined.def \
	test/mpi/fuzz.h test/mpi/fuzz_others.h test/mpi/matrix.def test/mpi/run.sh \
	test/mpi/tests.list \
	test/mpi22/cut.pl test/mpi22/link.sh test/mpi22/standin.sh \
	test/mpi41/look.c test/mpi41/mpi.h test/mpi41/mpi41.c \
	test/mutate test/newest.sh test/reasons.pm test/beside.sh test/run-mpich-suite test/site.sh \
	test/smpi/platform \
	test/tap \
	test/text/arguments.h test/text/corpus test/text/fuzz_nbccompare.c test/text/fuzz_nbcinfo.c \
	test/text/fuzz_nbcsim.c test/text/fuzz_text.c test/text/nbccompare test/text/nbcinfo \
	test/text/nbcsim \
	test/tools/agreement.c test/tools/alone.c test/tools/apart.c test/tools/app.c \
	test/tools/barrier.c test/tools/below.h test/tools/check.h test/tools/communicators.c test/tools/compared.c \
	test/tools/corrupt.c test/tools/culprit.c test/tools/early.c test/tools/exceptions.cc test/tools/freed.c \
	test/tools/freeing.c test/tools/hang.c test/tools/instructions.limits \
	test/tools/late.c test/tools/lost.c test/tools/measure.py test/tools/newer.h \
	test/tools/null.c test/tools/past.c test/tools/refuse.c test/tools/revoke.c test/tools/revoked.c test/tools/sessions.c \
	test/tools/sites.cc test/tools/sites.f test/tools/sites.py test/tools/statistics.c test/tools/trace.py \
	test/tools/traced.c test/tools/traced_run.c test/tools/tracer.c test/tools/tracer.def \
	test/tools/truth.c test/tools/unload.c \
	test/uncovered test/valgrind.supp test/wheel.py test/wheel.sh
