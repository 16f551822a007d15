! SPDX-License-Identifier: MIT
! MPI_Ialltoallw and its kin of mpi_f08 with large counts, and with a buffer that has gaps. Prints "all right".
program large
  use mpi_f08
  implicit none
  integer(MPI_COUNT_KIND), parameter :: counts(8) = 1
  integer(MPI_ADDRESS_KIND), parameter :: displs(8) = [0, 4, 8, 12, 16, 20, 24, 28]
  integer, asynchronous :: in(8), out(8), wide(16)
  integer :: ranks, rank, i, round, error, failures
  type(MPI_Datatype) :: types(8)
  type(MPI_Request) :: request
  type(MPI_Comm) :: ring

  failures = 0
  call MPI_Init()
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  types = MPI_INTEGER
  do round = 1, 50
    in = [(100 * rank + i - 1, i = 1, 8)]
    out = -1
    call MPI_Ialltoallw(in, counts, displs, types, out, counts, displs, types, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call expect(all(out(:ranks) == [(100 * (i - 1) + rank, i = 1, ranks)]), 'MPI_Ialltoallw')
    call MPI_Alltoallw_init(MPI_IN_PLACE, counts, displs, types, in, counts, displs, types, MPI_COMM_WORLD, &
        MPI_INFO_NULL, request)
    call MPI_Start(request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_Request_free(request)
    call expect(all(in(:ranks) == [(100 * (i - 1) + rank, i = 1, ranks)]), 'MPI_Alltoallw_init in place')
  end do

  ! MPICH 4.0.2's MPI_Ineighbor_alltoallw of mpi_f08 takes every topology for such a one.
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [modulo(rank - 1, ranks)], MPI_UNWEIGHTED, 1, &
      [modulo(rank + 1, ranks)], MPI_UNWEIGHTED, MPI_INFO_NULL, .false., ring)
  in = rank
  out = -1
  call MPI_Ineighbor_alltoallw(in, counts, displs, types, out, counts, displs, types, ring, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call expect(out(1) == modulo(rank - 1, ranks) .and. out(2) == -1, 'MPI_Ineighbor_alltoallw')
  in = rank + 1
  call MPI_Neighbor_alltoallw_init(in, counts, displs, types, out, counts, displs, types, ring, MPI_INFO_NULL, request)
  call MPI_Start(request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call MPI_Request_free(request)
  call expect(out(1) == modulo(rank - 1, ranks) + 1, 'MPI_Neighbor_alltoallw_init')

  ! Every second number is sent, or the MPI raises an error: never the numbers between.
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  wide = -1
  wide(1::2) = [(100 * rank + i - 1, i = 1, 8)]
  call MPI_Ialltoallw(wide(1::2), counts, displs, types, out, counts, displs, types, MPI_COMM_WORLD, request, error)
  if (error == MPI_SUCCESS) then
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call expect(all(out(:ranks) == [(100 * (i - 1) + rank, i = 1, ranks)]), 'a buffer with gaps')
  end if
  if (failures == 0 .and. rank == 0) print '(a)', 'all right'
  call MPI_Finalize()

contains

  subroutine expect(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (holds) return
    failures = failures + 1
    print '(2a)', 'wrong: ', what
  end subroutine
end program
