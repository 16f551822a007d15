! SPDX-License-Identifier: MIT
! A persistent reduction in Fortran that is started repeatedly. Open MPI 4.1 has no persistent
! collectives; nbcshim's module contains the interfaces that the MPI's own modules lack. To build it
! with nbcshim installed in PREFIX:
!
!     mpifort -I PREFIX/lib/fortran persistent.f90 -L PREFIX/lib -Wl,--no-as-needed -lnbcshim \
!         -Wl,-rpath,PREFIX/lib
program persistent
  use mpi_f08
  use nbcshim_f08
  implicit none
  integer :: rank, size, step
  double precision, asynchronous :: mine(4), mean(4)
  type(MPI_Request) :: request

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call MPI_Allreduce_init(mine, mean, 4, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, &
      MPI_INFO_NULL, request)
  mine = [1, 2, 3, 4] + rank
  do step = 1, 10
    call MPI_Start(request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    mean = mean / size
    mine = (mine + mean) / 2
  end do
  call MPI_Request_free(request)
  if (rank == 0) print '(a, 4f8.3)', 'mean', mean
  call MPI_Finalize()
end program
