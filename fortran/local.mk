# fortran/: the modules.

# What the MPI's Fortran modules lack, and the names of nbcshim.h. They hold no code, so their objects
# are left; the sources are installed too, for other compilers.

fortran_modules =
if HAVE_FORTRAN
fortran_modules += nbcshim
endif
if HAVE_FORTRAN_F08
fortran_modules += nbcshim_f08
endif
fortrandir = $(libdir)/fortran
nodist_fortran_HEADERS = $(fortran_modules:%=fortran/%.f90) $(fortran_modules:%=fortran/%.mod)
CLEANFILES += fortran/*.f90 fortran/*.mod fortran/*.o

module_source = $(AM_V_GEN)$(MKDIR_P) $(@D) && $(AWK) -v module=$(@F:.f90=) \
	-v f08=$(if $(findstring f08,$@),1,0) -v lacks="$(NBC_FORTRAN_LACKS)" \
	-f $(srcdir)/fortran/modules.awk $(srcdir)/include/nbcshim.h \
	$(srcdir)/pmpi/op/collectives.def >$@.new && mv $@.new $@
fortran/%.f90: pmpi/op/collectives.def include/nbcshim.h fortran/modules.awk config.status
	$(module_source)
fortran/%.mod: fortran/%.f90
	$(AM_V_GEN)cd fortran && $(mpi_root) $(MPIFC) -c $(<F)
# The wrappers of PyPI's Intel MPI need it.
mpi_root = $(if $(I_MPI_ROOT),I_MPI_ROOT=$(I_MPI_ROOT))

EXTRA_DIST += fortran/modules.awk
