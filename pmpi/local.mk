# pmpi/: the MPI layer.

# Shared objects are compiled with PIC defined (by libtool), static ones without: that is how the
# code tells the two apart.

lib@NBC_NAME@_la_CPPFLAGS = -iquote $(srcdir)/pmpi -iquote $(srcdir)/src -I$(srcdir)/include $(MPI_CPPFLAGS) \
	$(MPI_PROGRAM_CPPFLAGS)
# Other options for the objects of the static library, where configure has put those of the shared one behind them
# (lt_cv_prog_compiler_pic, as quickstart does).
$(lib@NBC_NAME@_la_OBJECTS): CFLAGS += $(NBC_STATIC_CFLAGS)
# What the names of the objects begin with.
lib@NBC_NAME@_la_SHORTNAME = libnbcshim_la
lib@NBC_NAME@_la_SOURCES = \
	pmpi/below/detect.c pmpi/below/detect.h \
	pmpi/below/device.c pmpi/below/device.h pmpi/below/level_zero.c pmpi/below/runtime.h \
	pmpi/below/elf.h \
	pmpi/below/export.h \
	pmpi/below/files.def \
	pmpi/below/hook.c pmpi/below/hook.h \
	pmpi/below/messages.def \
	pmpi/below/offload.c \
	pmpi/below/next.c pmpi/below/next.def pmpi/below/next.h \
	pmpi/below/ofi.c pmpi/below/ofi.h \
	pmpi/below/quirks.c pmpi/below/quirks.h \
	pmpi/below/revoked.c pmpi/below/revoked.h \
	pmpi/below/segment.c pmpi/below/segment.h \
	pmpi/below/slot.c pmpi/below/slot.h \
	pmpi/base/collect.c pmpi/base/collect.h \
	pmpi/base/in_mpi.c pmpi/base/in_mpi.h \
	pmpi/base/errors.c pmpi/base/errors.h \
	pmpi/base/hints.c pmpi/base/hints.h \
	pmpi/base/lock.h \
	pmpi/base/settings.c pmpi/base/settings.h \
	pmpi/base/state.c pmpi/base/state.h \
	pmpi/base/stats.h \
	pmpi/base/system_thread.c pmpi/base/system_thread.h \
	pmpi/base/table.h \
	pmpi/base/tag_space.c pmpi/base/tag_space.h \
	pmpi/op/bind.c pmpi/op/bind.h \
	pmpi/op/by_mpi.c pmpi/op/by_mpi.h \
	pmpi/op/call.h \
	pmpi/op/collectives.def pmpi/op/forms.def \
	pmpi/op/members.c pmpi/op/members.h \
	pmpi/op/message.c pmpi/op/message.h \
	pmpi/op/mpi_transport.c pmpi/op/mpi_transport.h \
	pmpi/op/nodemap.c pmpi/op/nodemap.h \
	pmpi/op/plan.c pmpi/op/plan.h \
	pmpi/op/rings.c pmpi/op/rings.h \
	pmpi/op/run.c pmpi/op/run.h \
	pmpi/op/shared.c pmpi/op/shared.h \
	pmpi/op/stage.c pmpi/op/stage.h \
	pmpi/op/trace_transport.c pmpi/op/trace_transport.h \
	pmpi/op/types.c pmpi/op/types.h \
	pmpi/comm/rank_lines.c pmpi/comm/rank_lines.h \
	pmpi/comm/handshake.c pmpi/comm/handshake.h \
	pmpi/comm/context.c pmpi/comm/context.h \
	pmpi/request/request.c pmpi/request/request.h \
	pmpi/request/ready.c \
	pmpi/engine/calls.c pmpi/engine/calls.h \
	pmpi/engine/callback.c \
	pmpi/engine/run_blocking.c \
	pmpi/engine/launch.c pmpi/engine/launch.h \
	pmpi/engine/locality.c \
	pmpi/engine/progress.c pmpi/engine/progress.h \
	pmpi/engine/thread.c \
	pmpi/hookless/barrier_before.c pmpi/hookless/barrier_before.h \
	pmpi/hookless/files.c \
	pmpi/hookless/p2p.c \
	pmpi/hookless/poll.h \
	pmpi/hookless/windows.c \
	pmpi/diag/broken_pipe.c \
	pmpi/diag/check.c \
	pmpi/diag/current_call.c \
	pmpi/diag/diag.h \
	pmpi/diag/hang_report.c \
	pmpi/diag/launcher.c \
	pmpi/diag/statistics.c \
	pmpi/diag/trace_file.c \
	pmpi/api/bypass.c \
	pmpi/api/communicators.c \
	pmpi/api/dynamic.c \
	pmpi/api/entry.c \
	pmpi/api/fortran.c \
	pmpi/api/fortran_names.c \
	pmpi/api/free.c \
	pmpi/api/idup.c \
	pmpi/api/init.c \
	pmpi/api/properties.c \
	pmpi/api/sessions.c \
	pmpi/api/setup.c pmpi/api/setup.h \
	pmpi/api/start.c \
	pmpi/api/wait_test.c pmpi/api/wait_test.h

# A shared object that reaches the MPI by dlsym alone would lose it as "not needed" wherever the
# compiler passes --as-needed. libtool puts linker flags behind the libraries, so MPI_NEEDED says
# --no-as-needed and then names the MPI's libraries once more.
lib@NBC_NAME@_la_LIBADD = libnbc_core.la $(MPI_LIBS)
lib@NBC_NAME@_la_LDFLAGS = $(AM_LDFLAGS) -version-info 1:1:1 -no-undefined $(MPI_NEEDED) \
	$(NBC_SHARED_LDFLAGS) -Wl,--version-script=$(srcdir)/libnbcshim.map
EXTRA_lib@NBC_NAME@_la_DEPENDENCIES = libnbcshim.map

# libnbcprofile.so times the collectives for nbcrun --compare. It is a tool in front of nbcshim or the
# MPI, and has nothing in common with nbcshim's state.

if SHARED # not over SMPI, nor with --disable-shared
lib_LTLIBRARIES += libnbcprofile.la
endif
libnbcprofile_la_LIBTOOLFLAGS = $(once_compiled)
libnbcprofile_la_CPPFLAGS = $(lib@NBC_NAME@_la_CPPFLAGS) -DNBC_PROFILE
libnbcprofile_la_SOURCES = \
	pmpi/base/collect.c pmpi/base/in_mpi.c \
	pmpi/profile/entry.c \
	pmpi/profile/missing.c \
	pmpi/profile/python.c \
	pmpi/profile/record.c pmpi/profile/record.h \
	pmpi/profile/stack.c
libnbcprofile_la_LIBADD = libnbc_core.la $(MPI_LIBS)
libnbcprofile_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -no-undefined $(MPI_NEEDED) \
	$(NBC_SHARED_LDFLAGS) -Wl,--version-script=$(srcdir)/libnbcprofile.map
EXTRA_libnbcprofile_la_DEPENDENCIES = libnbcprofile.map

# What the ranks of a job must have been built from alike: see pmpi/comm/handshake.h.
fingerprint.h: $(libnbc_core_la_SOURCES) $(lib@NBC_NAME@_la_SOURCES) config.h
	$(AM_V_GEN){ cat $(filter-out config.h,$^) && grep 'HAVE_P*MPI' config.h; } | cksum | \
	sed 's/ .*//; s/.*/#define NBC_FINGERPRINT "&"/' >$@
pmpi/comm/libnbcshim_la-handshake.lo one/pmpi/comm/handshake.o: fingerprint.h
CLEANFILES += fingerprint.h

EXTRA_DIST += libnbcprofile.map libnbcshim.map
