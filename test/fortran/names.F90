! SPDX-License-Identifier: MIT
! What nbcshim.h has beside the collectives, from Fortran.
program names
#include "binding.inc"
#if BINDING == 3
  use nbcshim_f08
#elif BINDING == 2
  use nbcshim
#else
  use nbcshim, only: MPI_ICOLL_MAX_OUTSTANDING, NBCSHIM_VERSION_MAJOR, NBCSHIM_VERSION_MINOR, &
      NBCSHIM_VERSION_PATCH, nbcshim_version, nbcshim_algorithm, nbcshim_hook
#endif
  use, intrinsic :: iso_c_binding, only: c_long_long
  implicit none
#if BINDING == 1
  include 'mpif.h'
#endif
  integer(MPI_ADDRESS_KIND), parameter :: large = huge(0_MPI_ADDRESS_KIND) - 7
  integer(MPI_ADDRESS_KIND) :: most, value
  integer(c_long_long) :: segment
  integer :: error, keyval, hooked, failures
  integer, asynchronous :: mine, total
  logical :: found
  character(20) :: name
  character(100) :: text
  HANDLE(MPI_Comm) :: comm
  HANDLE(MPI_Request) :: request

  failures = 0
  call MPI_Init(error)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, error)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_ICOLL_MAX_OUTSTANDING, most, found, error)
  call expect(error == MPI_SUCCESS .and. found .and. most >= 32767, 'of MPI_COMM_WORLD')
  call MPI_Comm_get_attr(comm, MPI_ICOLL_MAX_OUTSTANDING, value, found, error)
  call expect(error == MPI_SUCCESS .and. found .and. value == most, 'of a duplicate')
#if BINDING != 3
  call MPI_Attr_get(comm, MPI_ICOLL_MAX_OUTSTANDING, mine, found, error)
  call expect(error == MPI_SUCCESS .and. found .and. mine == most, 'by MPI_Attr_get')
#else
  call MPI_Comm_get_attr(comm, MPI_ICOLL_MAX_OUTSTANDING, value, found)
  call expect(found .and. value == most, 'without ierror')
#endif

  ! Other attributes are what they were.
  call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, keyval, large, error)
  call MPI_Comm_get_attr(comm, keyval, value, found, error)
  call expect(.not. found, 'an attribute that is not set')
  call MPI_Comm_set_attr(comm, keyval, large, error)
  call MPI_Comm_get_attr(comm, keyval, value, found, error)
  call expect(found .and. value == large, 'an attribute of the program')
  call MPI_Comm_free_keyval(keyval, error)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, found, error)
  call expect(found .and. value >= 32767, 'MPI_TAG_UB')

  call expect(nbcshim_version() == 10000 * NBCSHIM_VERSION_MAJOR + 100 * NBCSHIM_VERSION_MINOR + &
      NBCSHIM_VERSION_PATCH, 'the version')
  call nbcshim_hook(hooked, text)
  call expect(text /= '', 'the hook')
  mine = 1
  call MPI_Iallreduce(mine, total, 1, MPI_INTEGER, MPI_SUM, comm, request, error)
  call nbcshim_algorithm(request, name, segment)
  call expect(name == 'recursive_doubling' .and. segment == 0, name)
  call MPI_Wait(request, MPI_STATUS_IGNORE, error)
  call nbcshim_algorithm(request, name, segment)
  call expect(name == '', 'a null request has an algorithm')

  ! nbcshim does without its attribute. (The MPIs do not know that it is predefined.)
  call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN, error)
  call MPI_Comm_set_attr(comm, MPI_ICOLL_MAX_OUTSTANDING, large, error)
#if BINDING != 3
  call MPI_Attr_put(comm, MPI_ICOLL_MAX_OUTSTANDING, 7, error)
#endif
  call MPI_Comm_delete_attr(comm, MPI_ICOLL_MAX_OUTSTANDING, error)
  total = 0
  call MPI_Iallreduce(mine, total, 1, MPI_INTEGER, MPI_SUM, comm, request, error)
  call MPI_Comm_free(comm, error)
  call MPI_Wait(request, MPI_STATUS_IGNORE, error)
  call MPI_Comm_size(MPI_COMM_WORLD, mine, error)
  call expect(total == mine, 'a sum on a communicator whose attribute has been changed')
  if (failures == 0) print '(a)', 'all right'
  call MPI_Finalize(error)

contains

  subroutine expect(good, what)
    logical, intent(in) :: good
    character(*), intent(in) :: what
    if (.not. good) then
      failures = failures + 1
      print '(2a)', 'wrong: ', what
    end if
  end subroutine
end program
