# doc/ and examples/. The pictures are made of schedules, the page of algorithms of their rows.

.PHONY: algorithms doc-pictures
algorithms: tools/nbcinfo$(EXEEXT)
	$(srcdir)/doc/algorithms.sh tools/nbcinfo >algorithms.md.new
	mv algorithms.md.new $(srcdir)/doc/algorithms.md
doc-pictures: tools/nbcinfo$(EXEEXT)
	$(srcdir)/doc/algorithms.sh tools/nbcinfo $(srcdir)/doc/pictures

dist_man_MANS += doc/nbcshim.7

EXTRA_DIST += \
	doc/algorithms.md doc/algorithms.sh doc/checks.md doc/comparison.md doc/cures.md \
	doc/developers.md doc/device.md doc/fortran.md doc/guide.md doc/map doc/mpis.md \
	doc/packaging.md doc/performance.md \
	doc/performance/mpich-2.svg doc/performance/mpich-4.svg doc/performance/mpich-8.svg \
	doc/performance/openmpi-2.svg doc/performance/openmpi-4.svg doc/performance/openmpi-8.svg \
	doc/performance/virtual-fat-tree-1.svg doc/performance/virtual-dragonfly-8.svg \
	doc/programs-tried.md doc/programs.md doc/progress.md doc/python.md doc/reductions.md \
	doc/scaling.md doc/site.md doc/testing.md doc/tools.md \
	doc/tuning/groups doc/tuning/infiniband doc/tuning/slingshot \
	$(wildcard $(srcdir)/doc/performance/*.tsv)

EXTRA_DIST += \
	examples/autoconf/Makefile.in examples/autoconf/configure.ac examples/autoconf/residual.c \
	examples/device.c examples/double_buffer.c examples/fft2d.c examples/jacobi.c examples/mismatch.c \
	examples/nbx.c examples/persistent.f90 examples/poisson_cg.c
