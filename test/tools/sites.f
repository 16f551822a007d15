! SPDX-License-Identifier: MIT
! Two subroutines that call MPI_Barrier: the Fortran binding of the MPI calls it for both.
      subroutine first_caller
      include 'mpif.h'
      integer error
      call MPI_Barrier(MPI_COMM_WORLD, error)
      print *, error
      end
      subroutine second_caller
      include 'mpif.h'
      integer error
      call MPI_Barrier(MPI_COMM_WORLD, error)
      print *, error
      end
      program sites
      integer error
      call MPI_Init(error)
      call first_caller
      call second_caller
      call MPI_Finalize(error)
      end
