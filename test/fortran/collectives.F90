! SPDX-License-Identifier: MIT
! Every collective, nonblocking and persistent, from Fortran, with results that are checked.
!
! MODULE: use nbcshim's module too.
! NO_NONBLOCKING, NO_PERSISTENT leave out what the MPI's binding does not have.
#if BINDING == 3
#define IERR
#else
#define IERR , error
#endif

module setting
#include "binding.inc"
#if defined(MODULE) && BINDING == 3
  use nbcshim_f08
#elif defined(MODULE)
  use nbcshim
#endif
  implicit none
#if BINDING == 1
  include 'mpif.h'
#endif
  integer, parameter :: most = 64
  integer :: rank, size, error, failures = 0
  integer :: left, right
  HANDLE(MPI_Comm) :: comm, ring

contains

  subroutine expect(good, what)
    logical, intent(in) :: good
    character(*), intent(in) :: what
    if (.not. good) then
      failures = failures + 1
      print '(a,i0,a,a)', 'rank ', rank, ': wrong: ', what
    end if
  end subroutine

  ! What rank "from" has for rank "to".
  elemental integer function item(from, to)
    integer, intent(in) :: from, to
    item = 1000 * from + to + 1
  end function

  subroutine prepare()
    HANDLE(MPI_Comm) :: world
    world = MPI_COMM_WORLD
    call MPI_Comm_rank(world, rank IERR)
    call MPI_Comm_size(world, size IERR)
    call MPI_Comm_dup(world, comm IERR)
    left = modulo(rank - 1, size)
    right = modulo(rank + 1, size)
#if BINDING == 3
    ! MPICH 4.0.2's MPI_Ineighbor_alltoallw of mpi_f08 takes every topology for such a one.
    call MPI_Dist_graph_create_adjacent(world, 2, [left, right], MPI_UNWEIGHTED, 2, &
        [left, right], MPI_UNWEIGHTED, MPI_INFO_NULL, .false., ring IERR)
#else
    call MPI_Cart_create(world, 1, [size], [.true.], .false., ring IERR)
#endif
  end subroutine
end module

! The collectives one by one: start(collective) sets the request up; nonblocking if form is 1.
module calls
  use setting
  implicit none
  integer, asynchronous :: in(most), out(most)
  integer :: counts(most), displs(most), totals(most)
  integer(MPI_ADDRESS_KIND) :: bytes(most)
  HANDLE(MPI_Datatype) :: types(most)
  character(24), parameter :: names(25) = [character(24) :: 'barrier', 'bcast', 'gather', 'gatherv', 'scatter', &
      'scatterv', 'allgather', 'allgatherv', 'alltoall', 'alltoallv', 'alltoallw', 'reduce', 'allreduce', &
      'reduce_scatter_block', 'reduce_scatter', 'scan', 'exscan', 'neighbor_allgather', 'neighbor_allgatherv', &
      'neighbor_alltoall', 'neighbor_alltoallv', 'neighbor_alltoallw', 'allreduce in place', &
      'alltoallw in place', 'bcast at MPI_BOTTOM']

contains

  subroutine inputs()
    integer :: i
    in = 0
    out = -1
    in(1:size) = item(rank, [(i, i = 0, size - 1)])
    counts = 1
    displs = [(i - 1, i = 1, most)]
    bytes = 4 * displs
    types = MPI_INTEGER
  end subroutine

  logical function is_there(form)
    integer, intent(in) :: form
    is_there = .true.
#ifdef NO_NONBLOCKING
    if (form == 1) is_there = .false.
#endif
#ifdef NO_PERSISTENT
    if (form == 2) is_there = .false.
#endif
  end function

  subroutine start(which, form, request)
    integer, intent(in) :: which, form
    HANDLE(MPI_Request), intent(inout) :: request
    ! Gone when this returns: the arrays of a call may be.
    integer :: ones(most), places(most), in_bytes(most)
    HANDLE(MPI_Datatype) :: kinds(most)
    ones = counts
    places = displs
    in_bytes = 4 * displs
    kinds = types
    if (form == 1) then
#ifndef NO_NONBLOCKING
#define OF(name) MPI_I/**/name
#define LAST request IERR
#include "calls.inc"
#endif
    else
#ifndef NO_PERSISTENT
#undef OF
#undef LAST
#define OF(name) MPI_/**/name/**/_init
#define LAST MPI_INFO_NULL, request IERR
#include "calls.inc"
#endif
    end if
    ones = -1
    places = -1
    in_bytes = -1
    kinds = MPI_DATATYPE_NULL
  end subroutine

  subroutine check(which, form)
    integer, intent(in) :: which, form
    integer :: i, to, sums(0:size - 1), below(0:size - 1)
    logical :: good
    sums = [(sum(item([(i, i = 0, size - 1)], to)), to = 0, size - 1)]
    below = [(sum(item([(i, i = 0, rank - 1)], to)), to = 0, size - 1)]
    good = .true.
    select case (which)
    case (2, 25)
      good = get(in) == size .and. equal(in, item(size - 1, [(i, i = 0, size - 1)]))
    case (3, 4)
      if (rank == 0) good = equal(out, item([(i, i = 0, size - 1)], 0))
    case (5, 6)
      good = out(1) == item(0, rank)
    case (7, 8)
      good = equal(out, item([(i, i = 0, size - 1)], 0))
    case (9, 10, 11)
      good = equal(out, item([(i, i = 0, size - 1)], rank))
    case (24)
      good = equal(in, item([(i, i = 0, size - 1)], rank))
    case (12)
      if (rank == 0) good = equal(out, sums)
    case (13)
      good = equal(out, sums)
    case (23)
      good = equal(in, sums)
    case (14, 15)
      good = out(1) == sums(rank)
    case (16)
      good = equal(out, below + item(rank, [(i, i = 0, size - 1)]))
    case (17)
      if (rank > 0) good = equal(out, below)
    case (18, 19)
      good = out(1) == item(left, 0) .and. out(2) == item(right, 0)
    case (20:22)
      ! The neighbor on the left has sent its second block, that on the right its first.
      if (size > 2) good = out(1) == item(left, 1) .and. out(2) == item(right, 0)
    end select
    call expect(good, trim(merge('nonblocking', 'persistent ', form == 1)) // ' ' // names(which))
  end subroutine

  integer function get(array)
    integer, intent(in) :: array(:)
    get = count(array /= 0)
  end function

  logical function equal(array, expected)
    integer, intent(in) :: array(:), expected(:)
    equal = all(array(1:ubound(expected, 1)) == expected)
  end function
end module

program collectives
  use calls
  implicit none
  HANDLE(MPI_Request) :: request, two(2)
  integer :: which, form, again
  integer(MPI_ADDRESS_KIND) :: address(1)
  integer, asynchronous :: others(2)
#if BINDING == 3
  type(MPI_Status) :: status
#else
  integer :: status(MPI_STATUS_SIZE)
#endif
  HANDLE(MPI_Datatype) :: absolute
  HANDLE(MPI_Comm) :: made, made_too
  integer :: total

  call MPI_Init(error)
  call prepare()
  call MPI_Get_address(in, address(1) IERR)
  call MPI_Type_create_hindexed(1, [size], address, MPI_INTEGER, absolute IERR)
  call MPI_Type_commit(absolute IERR)
  do form = 1, 2
    if (.not. is_there(form)) cycle
    do which = 1, 25
      ! Open MPI 4.1.4's Fortran binding converts as many types of neighbors as there are ranks.
      if (which == 22 .and. form == 1 .and. size == 1) cycle
      call inputs()
      types(most) = absolute
      call start(which, form, request)
      if (form == 1) then
        call MPI_Wait(request, MPI_STATUS_IGNORE IERR)
        call check(which, form)
        call expect(request == MPI_REQUEST_NULL, 'request after wait')
        cycle
      end if
      do again = 1, 2
        call inputs()
        call MPI_Start(request IERR)
        call MPI_Wait(request, status IERR)
        call check(which, form)
      end do
      call MPI_Request_free(request IERR)
    end do
  end do

#ifndef NO_NONBLOCKING
  ! Two at once, without statuses.
  others = rank
  call MPI_Ibarrier(comm, two(1) IERR)
  call MPI_Iallreduce(MPI_IN_PLACE, others, 2, MPI_INTEGER, MPI_MAX, comm, two(2) IERR)
  call MPI_Waitall(2, two, MPI_STATUSES_IGNORE IERR)
  call expect(all(others == size - 1), 'waitall')

  ! A communicator that is made while the program does something else.
  call MPI_Comm_idup(comm, made, request IERR)
  call use_stack(7)
  call MPI_Wait(request, MPI_STATUS_IGNORE IERR)
  others = rank
  call MPI_Iallreduce(MPI_IN_PLACE, others, 2, MPI_INTEGER, MPI_MAX, made, request IERR)
  call MPI_Wait(request, MPI_STATUS_IGNORE IERR)
  call expect(all(others == size - 1), 'a collective on what idup has made')
  call MPI_Comm_free(made IERR)

  ! Two of one parent.
  call MPI_Comm_idup(comm, made, two(1) IERR)
  call MPI_Comm_idup(comm, made_too, two(2) IERR)
  call use_stack(7)
  call MPI_Waitall(2, two, MPI_STATUSES_IGNORE IERR)
  others = rank
  call MPI_Iallreduce(MPI_IN_PLACE, others, 2, MPI_INTEGER, MPI_MAX, made_too, request IERR)
  call MPI_Wait(request, MPI_STATUS_IGNORE IERR)
  call expect(all(others == size - 1), 'a collective on the second one')
  call MPI_Comm_free(made IERR)
  call MPI_Comm_free(made_too IERR)
  call types_of_other_peers()
#endif
  call MPI_Type_free(absolute IERR)
  call MPI_Comm_free(ring IERR)
  call MPI_Comm_free(comm IERR)
  call MPI_Reduce(failures, total, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD IERR)
  if (rank == 0 .and. total == 0) print '(a)', 'all right'
  call MPI_Finalize(error)
  if (failures > 0) stop 1

contains

#ifndef NO_NONBLOCKING
  ! Arrays of datatypes that are not as long as the communicator has ranks: for the remote group, which has
  ! the other parity, and for the neighbors in a graph.
  subroutine types_of_other_peers()
    HANDLE(MPI_Comm) :: half, inter, graph
    integer :: i, parity, there, ends(size), edges(2 * size), ones(most), offsets(most)
    parity = modulo(rank, 2)
    there = merge(size / 2, (size + 1) / 2, parity == 0)
    ones = 1
    offsets = 4 * displs
    ! MPICH 4.0.2's MPI_Ialltoallw of mpi_f08 takes as many types as the local group has ranks.
    if (size > 1 .and. (BINDING /= 3 .or. modulo(size, 2) == 0)) then
      call MPI_Comm_split(comm, parity, 0, half IERR)
      call MPI_Intercomm_create(half, 0, comm, 1 - parity, 5, inter IERR)
      out = -1
      in(1:there) = item(rank, [(2 * i + 1 - parity, i = 0, there - 1)])
      types(there + 1:) = MPI_DATATYPE_NULL
      call MPI_Ialltoallw(in, ones, offsets, types, out, ones, offsets, types, inter, request IERR)
      call MPI_Wait(request, MPI_STATUS_IGNORE IERR)
      call expect(all(out(1:there) == item([(2 * i + 1 - parity, i = 0, there - 1)], rank)) &
          .and. out(there + 1) == -1, 'alltoallw between groups')
      call MPI_Comm_free(inter IERR)
      call MPI_Comm_free(half IERR)
    end if
#if BINDING != 3
    ! No communicator, so that the arrays have no length: the handler of MPI_COMM_WORLD counts.
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, error)
    call MPI_Ialltoallw(in, ones, offsets, types, out, ones, offsets, types, MPI_COMM_NULL, request, error)
    call expect(error /= MPI_SUCCESS, 'alltoallw on no communicator')
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL, error)
    if (size > 2) then
      ends = [(2 * i, i = 1, size)]
      edges = [(modulo(i / 2 + merge(-1, 1, modulo(i, 2) == 0), size), i = 0, 2 * size - 1)]
      call MPI_Graph_create(comm, size, ends, edges, .false., graph IERR)
      call inputs()
      types(3:) = MPI_DATATYPE_NULL
      call MPI_Ineighbor_alltoallw(in, ones, bytes, types, out, ones, bytes, types, graph, request IERR)
      call MPI_Wait(request, MPI_STATUS_IGNORE IERR)
      call expect(out(1) == item(left, 1) .and. out(2) == item(right, 0), 'neighbors in a graph')
      call MPI_Comm_free(graph IERR)
    end if
#endif
  end subroutine
#endif

  ! Overwrites what calls have left behind there.
  recursive subroutine use_stack(n)
    integer, intent(in) :: n
    integer, volatile :: room(2000)
    room = -559038737
    if (n > 0) call use_stack(n - 1)
  end subroutine
end program
