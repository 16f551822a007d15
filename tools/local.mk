# tools/: the commands.

# --- nbcinfo

bin_PROGRAMS += tools/nbcinfo
tools_nbcinfo_CPPFLAGS = -iquote $(srcdir)/tools -iquote $(srcdir)/src -I$(srcdir)/include \
	$(MPI_CPPFLAGS)
tools_nbcinfo_SOURCES = \
	tools/info/info.h tools/info/installed.c tools/info/predicted.c \
	tools/nbcinfo.c \
	tools/sched_print.c tools/sched_print.h
# --selftest makes the cases of the tests, and measures what nbcbench measures.
if !SIMULATED
tools_nbcinfo_CPPFLAGS += -DNBC_SELFTEST -iquote $(srcdir)/bench -iquote $(srcdir)/test/mpi \
	$(MPI_PROGRAM_CPPFLAGS)
tools_nbcinfo_SOURCES += \
	test/mpi/common/batch.c test/mpi/common/batch.h \
	test/mpi/common/calls.def test/mpi/common/collectives.def \
	test/mpi/common/cases.c test/mpi/common/cases.h \
	test/mpi/common/device.c test/mpi/common/device.h \
	test/mpi/common/kinds.c test/mpi/common/kinds.h \
	test/mpi/common/layouts.c test/mpi/common/layouts.h \
	test/mpi/common/sides.c test/mpi/common/sides.h \
	test/mpi/common/strong.c \
	test/mpi/common/topology.c test/mpi/common/topology.h \
	test/mpi/common/util.c test/mpi/common/util.h \
	tools/selftest/right.c \
	tools/selftest/selftest.c tools/selftest/selftest.h \
	tools/selftest/times.c
tools_nbcinfo_LDADD = $(bench_nbcbench_LDADD)
else
tools_nbcinfo_SOURCES += \
	tools/call.c tools/call.h \
	tools/emit.c tools/emit.h \
	tools/picture.c tools/picture.h
tools_nbcinfo_LDADD = lib@NBC_NAME@.la libnbc_core.la $(MPI_LIBS)
endif

# The rows of nbcinfo --cures.
EXTRA_DIST += $(cures:%=test/cures/%.c)
cures = comms in_place inter neighbors persistent reductions requests types
CLEANFILES += cures_table.h
cures_table.h: test/cures/cures.list
	$(AM_V_GEN)$(AWK) -F ' *[|] *' '!/^\#/ && NF > 9 { gsub(/"/, "\\\""); \
		printf "    {\"%s\", \"%s\", \"%s\", \"%s\", {\"%s\", \"%s\", \"%s\", \"%s\", \"%s\"}},\n", \
		$$1, $$3, $$4, $$5, $$6, $$7, $$8, $$9, $$10 }' $(srcdir)/test/cures/cures.list >$@
# The second name is the one of automake up to 1.15.
tools/info/nbcinfo-installed.$(OBJEXT) tools/info/tools_nbcinfo-installed.$(OBJEXT): cures_table.h

# --- nbcsim, which knows no MPI; its parts are tested like those of src/

noinst_LTLIBRARIES += libnbcsim.la
libnbcsim_la_CPPFLAGS = -iquote $(srcdir)/src -iquote $(srcdir)/tools
libnbcsim_la_LIBTOOLFLAGS = $(once_compiled)
libnbcsim_la_CFLAGS = $(AM_CFLAGS) -Wmissing-prototypes
libnbcsim_la_SOURCES = \
	tools/emit.c tools/emit.h \
	tools/gnuplot.c tools/gnuplot.h \
	tools/nbcsim/advice.c tools/nbcsim/advice.h \
	tools/nbcsim/bounds.c \
	tools/nbcsim/buildcost.c tools/nbcsim/buildcost.h \
	tools/nbcsim/calls.c tools/nbcsim/calls.h \
	tools/nbcsim/cells.c tools/nbcsim/cells.h \
	tools/nbcsim/engine.c tools/nbcsim/engine.h \
	tools/nbcsim/goal.c tools/nbcsim/goal.h \
	tools/nbcsim/list.c tools/nbcsim/list.h \
	tools/nbcsim/network.c tools/nbcsim/network.h \
	tools/nbcsim/report.c tools/nbcsim/report.h \
	tools/plot.c tools/plot.h

bin_PROGRAMS += tools/nbcsim/nbcsim
tools_nbcsim_nbcsim_SOURCES = tools/meter.c tools/meter.h tools/nbcsim/nbcsim.c
tools_nbcsim_nbcsim_CPPFLAGS = -iquote $(srcdir)/src -iquote $(srcdir)/tools
tools_nbcsim_nbcsim_LDADD = libnbcsim.la libnbc_core.la -lm

# --- nbctune, which measures through the library

if !SIMULATED
bin_PROGRAMS += tools/nbctune
endif
tools_nbctune_CPPFLAGS = $(bench_nbcbench_CPPFLAGS)
tools_nbctune_SOURCES = \
	tools/tune.c tools/tune.h \
	tools/nbctune.c
tools_nbctune_LDADD = $(bench_nbcbench_LDADD)

# --- nbccompare, which tells what nbcrun --compare has found

pkglibexecdir = $(libexecdir)/nbcshim
pkglibexec_PROGRAMS = tools/nbccompare
tools_nbccompare_CPPFLAGS = -iquote $(srcdir)/tools -iquote $(srcdir)/tools/compare -iquote $(srcdir)/src
tools_nbccompare_SOURCES = \
	tools/compare/figures.c tools/compare/figures.h \
	tools/compare/names.c tools/compare/names.h \
	tools/compare/nbccompare.c \
	tools/compare/page.c tools/compare/page.h \
	tools/compare/runs.c tools/compare/runs.h \
	tools/emit.c tools/emit.h \
	tools/gnuplot.c tools/gnuplot.h
tools_nbccompare_LDADD = libnbc_core.la -lm

# --- nbcc, nbccxx and nbcfort: one script and one man page

bin_SCRIPTS = tools/nbcc tools/nbccxx tools/nbcfort tools/nbcrun
dist_man_MANS += doc/nbcc.1 doc/nbcinfo.1 doc/nbcrun.1 doc/nbcsim.1 doc/nbctune.1
nodist_man_MANS = doc/nbccxx.1 doc/nbcfort.1
CLEANFILES += tools/nbccxx tools/nbcfort doc/nbccxx.1 doc/nbcfort.1
tools/nbccxx tools/nbcfort: tools/nbcc
	$(AM_V_GEN)sed 's/^self=nbcc$$/self=$(@F)/' tools/nbcc >$@ && chmod +x $@
doc/nbccxx.1 doc/nbcfort.1: doc/nbcc.1
	$(AM_V_GEN)$(MKDIR_P) doc && sed 's/^\.Dt NBCC 1$$/.Dt '`echo $(@F:.1=) | tr a-z A-Z`' 1/' \
		$(srcdir)/doc/nbcc.1 >$@

# --- completion in bash and zsh, made of the lines of --help in the sources.

completed = nbcbench nbcinfo nbcrun nbcsim nbctune
bashcompletiondir = $(datadir)/bash-completion/completions
bashcompletion_DATA = $(completed:%=completion/%)
zshcompletiondir = $(datadir)/zsh/site-functions
zshcompletion_DATA = $(completed:%=completion/_%)
CLEANFILES += $(bashcompletion_DATA) $(zshcompletion_DATA)
completion_of = $(AM_V_GEN)$(MKDIR_P) completion && $(AWK) -v shell=$(1) -v command=$(2) \
	-f $(srcdir)/tools/completion.awk $(srcdir)/src/colls.def $(srcdir)/src/algs.def $< >$@
completion/nbcbench completion/_nbcbench: bench/nbcbench.c
completion/nbcinfo completion/_nbcinfo: tools/nbcinfo.c
completion/nbcrun completion/_nbcrun: tools/nbcrun.in
completion/nbcsim completion/_nbcsim: tools/nbcsim/nbcsim.c
completion/nbctune completion/_nbctune: tools/nbctune.c
$(bashcompletion_DATA) $(zshcompletion_DATA): tools/completion.awk src/colls.def src/algs.def
$(bashcompletion_DATA):
	$(call completion_of,bash,$(@F))
$(zshcompletion_DATA):
	$(call completion_of,zsh,$(@F:_%=%))

EXTRA_DIST += tools/completion.awk
