# Writes a Fortran module with the interfaces of the collectives that the MPI's own module lacks,
# from pmpi/op/collectives.def, and with the names of nbcshim.h.
#
#   awk -v module=NAME -v f08=0|1 -v lacks="ibarrier barrier_init ..." -f modules.awk nbcshim.h \
#       collectives.def
#
# f08=1: for programs that use mpi_f08, else mpi. lacks=all: every one of them.

/^#define NBCSHIM_VERSION_[A-Z]+ [0-9]+$/ { version[substr($2, 17)] = $3 }

# The definition of a list may go on over several lines.
/^#define ITEMS_/ { reading = 1; text = "" }
reading {
    line = $0
    more = sub(/\\[ \t]*$/, "", line)
    text = text line
    if (!more) {
        reading = 0
        sub(/^#define /, "", text)
        name = substr(text, 1, index(text, "(") - 1)
        body = substr(text, index(text, ")") + 1)
        items[name] = expanded(body)
    }
    next
}
/^(COLLECTIVE|NEIGHBORHOOD)\(/ { row = ""; inside = 1 }
inside {
    row = row $0
    if ($0 ~ /\)$/) {
        inside = 0
        rows[++nrows] = row
    }
}

# A list may have others in it.
function expanded(body,    inner)
{
    while (match(body, /ITEMS_[A-Z_]+\(_\)/)) {
        inner = substr(body, RSTART, RLENGTH - 3)
        body = substr(body, 1, RSTART - 1) items[inner] substr(body, RSTART + RLENGTH)
    }
    return body
}

# Sets kinds[] and names[]; returns their number.
function split_items(list,    n, parts)
{
    n = 0
    while (match(list, /_\([A-Z]+, *[a-z]+, *[a-z_]+\)/)) {
        split(substr(list, RSTART + 2, RLENGTH - 3), parts, /, */)
        kinds[++n] = parts[1]
        names[n] = parts[3]
        list = substr(list, RSTART + RLENGTH)
    }
    return n
}

function handle(type)
{
    return f08 ? "type(MPI_" type ")" : "integer"
}

function declare(kind, name)
{
    if (kind == "IN" || kind == "OUT")
        return "type(*), dimension(*), asynchronous :: " name
    if (kind == "COUNT" || kind == "ROOT")
        return "integer, intent(in) :: " name
    if (kind == "COUNTS" || kind == "DISPLS")
        return "integer, intent(in) :: " name "(*)"
    if (kind == "ADDRESSES")
        return "integer(kind=MPI_ADDRESS_KIND), intent(in) :: " name "(*)"
    if (kind == "TYPE")
        return handle("Datatype") ", intent(in) :: " name
    if (kind == "OP")
        return handle("Op") ", intent(in) :: " name
    return handle("Datatype") ", intent(in) :: " name "(*)"
}

# Buffers are of any type and rank; each compiler has a word for it.
function directives(buffers)
{
    if (buffers == "")
        return
    print "      !GCC$ ATTRIBUTES NO_ARG_CHECK :: " buffers
    print "      !DEC$ ATTRIBUTES NO_ARG_CHECK :: " buffers
    print "      !DIR$ IGNORE_TKR " buffers
    print "      !$PRAGMA IGNORE_TKR " buffers
    print "      !IBM* IGNORE_TKR " buffers
}

function procedure(name, list, persistent,    i, n, buffers, specific)
{
    if (lacks != "all" && index(" " lacks " ", " " tolower(name) " ") == 0)
        return
    specific = f08 ? "nbcshim_" tolower(name) "_f08" : "MPI_" name
    n = split_items(list)
    print "  interface" (f08 ? " MPI_" name : "")
    print "    subroutine " specific "( &"
    buffers = ""
    for (i = 1; i <= n; i++) {
        print "        " names[i] ", &"
        if (kinds[i] == "IN" || kinds[i] == "OUT")
            buffers = buffers (buffers == "" ? "" : ", ") names[i]
    }
    print "        comm, " (persistent ? "info, " : "") "request, ierror) &"
    print "        bind(C, name=\"mpi_" tolower(name) "_\")"
    print "      import"
    directives(buffers)
    for (i = 1; i <= n; i++)
        print "      " declare(kinds[i], names[i])
    print "      " handle("Comm") ", intent(in) :: comm"
    if (persistent)
        print "      " handle("Info") ", intent(in) :: info"
    print "      " handle("Request") ", intent(out) :: request"
    print "      integer, " (f08 ? "optional, " : "") "intent(out) :: ierror"
    print "    end subroutine"
    print "  end interface"
}

# The names of nbcshim.h that are no collectives; fortran_names.c has the last two.
function own_names()
{
    print "  ! The keyval; the attribute's value is an INTEGER(KIND=MPI_ADDRESS_KIND)."
    print "  integer(c_int), protected, bind(C, name=\"nbcshim_icoll_max_outstanding\") :: &"
    print "      MPI_ICOLL_MAX_OUTSTANDING"
    print "  integer, parameter :: NBCSHIM_VERSION_MAJOR = " version["MAJOR"]
    print "  integer, parameter :: NBCSHIM_VERSION_MINOR = " version["MINOR"]
    print "  integer, parameter :: NBCSHIM_VERSION_PATCH = " version["PATCH"]
    print "  interface"
    print "    function nbcshim_version() bind(C, name=\"nbcshim_version\")"
    print "      import"
    print "      integer(c_int) :: nbcshim_version"
    print "    end function"
    print "    ! name: blank for no algorithm."
    print "    subroutine nbcshim_algorithm(request, name, segment)"
    print "      import"
    print "      " handle("Request") ", intent(in) :: request"
    print "      character(*), intent(out) :: name"
    print "      integer(c_long_long), intent(out) :: segment"
    print "    end subroutine"
    print "    ! hooked: 0 for no."
    print "    subroutine nbcshim_hook(hooked, text)"
    print "      integer, intent(out) :: hooked"
    print "      character(*), intent(out) :: text"
    print "    end subroutine"
    print "  end interface"
}

END {
    print "! Made from pmpi/op/collectives.def of nbcshim. SPDX-License-Identifier: MIT"
    print "module " module
    print "  use, intrinsic :: iso_c_binding, only: c_int, c_long_long"
    if (f08)
        print "  use mpi_f08, only: MPI_Comm, MPI_Datatype, MPI_Info, MPI_Op, MPI_Request, &"
    else
        print "  use mpi, only: &"
    print "      MPI_ADDRESS_KIND"
    print "  implicit none"
    print "  private :: c_int, c_long_long, MPI_ADDRESS_KIND" (f08 ? ", MPI_Comm, MPI_Datatype, MPI_Info, MPI_Op, MPI_Request" : "")
    own_names()
    for (r = 1; r <= nrows; r++) {
        text = rows[r]
        gsub(/^[A-Z]+\(|\)$/, "", text)
        split(text, field, /, */)
        procedure("I" field[2], items[field[4]], 0)
        procedure(field[1] "_init", items[field[4]], 1)
    }
    print "end module"
}
