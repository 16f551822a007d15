# packaging/ and debian/: what other tools find, and what an installation leaves.

pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = nbcshim.pc

# find_package(nbcshim) of CMake.
cmakedir = $(libdir)/cmake/nbcshim
cmake_DATA = nbcshim-config.cmake nbcshim-config-version.cmake
CLEANFILES += $(cmake_DATA)
# The MPI's library as the dynamic linker names it; nothing if that cannot be found out.
mpi_soname = $(OBJDUMP) -p .libs/lib@NBC_NAME@.so 2>/dev/null | \
	sed -nE 's/^ *NEEDED *(lib(mpi|mpich|mpi_abi|mpi_cray|mpich_[a-z]+)\.so[.0-9]*)$$/\1/p' | head -n 1
nbcshim-config.cmake nbcshim-config-version.cmake: %: %.in Makefile lib@NBC_NAME@.la
	$(AM_V_GEN)sed -e 's|@prefix[@]|$(prefix)|' -e 's|@libdir[@]|$(libdir)|' \
		-e 's|@includedir[@]|$(includedir)|' -e 's|@MPICC[@]|$(MPICC)|' -e 's|@MPICXX[@]|$(MPICXX)|' \
		-e 's|@MPIFC[@]|$(firstword $(MPIFC))|' -e 's|@NBC_NAME[@]|@NBC_NAME@|' -e "s|@SONAME[@]|`$(mpi_soname)`|" \
		-e 's|@PACKAGE_VERSION[@]|$(PACKAGE_VERSION)|' $< >$@

modulefiledir = $(libdir)/modulefiles
modulefile_DATA = packaging/nbcshim
CLEANFILES += packaging/nbcshim
packaging/nbcshim: packaging/nbcshim.in Makefile
	$(AM_V_GEN)$(MKDIR_P) packaging && sed -e 's|@prefix[@]|$(prefix)|' -e 's|@libdir[@]|$(libdir)|' \
		-e 's|@VERSION[@]|$(PACKAGE_VERSION)|' $(srcdir)/packaging/nbcshim.in >$@

# Installations side by side (--enable-side-by-side) share what does not depend on the MPI. It stays while
# the library of another MPI is there.
side_by_side = $(filter %/nbcshim/,$(dir $(libdir)))
beside = $(if $(side_by_side),$(filter-out $(DESTDIR)$(libdir)/%,$(wildcard $(DESTDIR)$(side_by_side)*/libnbcshim*)))
shared_files = tools/nbcrun $(include_HEADERS) $(pkginclude_HEADERS) tools/nbccompare doc/nbcrun.1 doc/nbcshim.7 \
	$(bashcompletion_DATA) $(zshcompletion_DATA)
unless_beside = $(if $(beside),$(filter-out $(shared_files),$(1)),$(1))
uninstalled = uninstall-am
$(uninstalled): bin_SCRIPTS := $(call unless_beside,$(bin_SCRIPTS))
$(uninstalled): include_HEADERS := $(call unless_beside,$(include_HEADERS))
$(uninstalled): pkginclude_HEADERS := $(call unless_beside,$(pkginclude_HEADERS))
$(uninstalled): pkglibexec_PROGRAMS := $(call unless_beside,$(pkglibexec_PROGRAMS))
$(uninstalled): dist_man_MANS := $(call unless_beside,$(dist_man_MANS))
$(uninstalled): bashcompletion_DATA := $(call unless_beside,$(bashcompletion_DATA))
$(uninstalled): zshcompletion_DATA := $(call unless_beside,$(zshcompletion_DATA))

# Its directories go as soon as they are empty; those that other programs have too only below a prefix that
# no system comes with. The prefix stays: "make distcheck" looks there.
own_directories = $(pkgincludedir) $(pkglibexecdir) $(cmakedir) $(modulefiledir) $(fortrandir) $(pkgconfigdir) \
	$(if $(side_by_side),$(dir $(cmakedir)) $(libdir) $(side_by_side))
common_directories = $(bindir) $(includedir) $(libexecdir) $(dir $(cmakedir)) $(libdir) $(man1dir) $(man7dir) $(mandir) \
	$(bashcompletiondir) $(dir $(bashcompletiondir)) $(zshcompletiondir) $(dir $(zshcompletiondir)) $(datadir) \
	$(side_by_side:%/nbcshim/=%)
uninstall-hook:
	-@for directory in $(own_directories) $(if $(filter-out /usr /usr/local,$(prefix)),$(common_directories)); do \
		rmdir "$(DESTDIR)$$directory" 2>/dev/null; \
	done; :

EXTRA_DIST += \
	packaging/nbcshim.in packaging/spack.py \
	packaging/wheel/_nbcshim_on.py packaging/wheel/assemble.py packaging/wheel/build.sh \
	packaging/wheel/nbcshim.pth \
	packaging/wheel/nbcshim/__init__.py packaging/wheel/nbcshim/__main__.py \
	packaging/wheel/nbcshim/_elf.py packaging/wheel/nbcshim/_load.py \
	packaging/wheel/nbcshim/_tools.py

EXTRA_DIST += \
	debian/changelog debian/control debian/copyright debian/nbcshim.docs \
	debian/nbcshim.examples debian/nbcshim.lintian-overrides debian/rules \
	debian/source/format

EXTRA_DIST += nbcshim-config.cmake.in nbcshim-config-version.cmake.in
