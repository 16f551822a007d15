! SPDX-License-Identifier: MIT
! An MPI_Ialltoallw for an inactive nbcshim.
program native
#include "binding.inc"
  implicit none
#if BINDING == 1
  include 'mpif.h'
#endif
  integer, parameter :: most = 64
  integer, asynchronous :: in(most), out(most)
  integer :: ones(most), at(most), error, n, me, i
  HANDLE(MPI_Datatype) :: kinds(most)
  HANDLE(MPI_Request) :: request

  call MPI_Init(error)
  call MPI_Comm_size(MPI_COMM_WORLD, n, error)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, error)
  kinds = MPI_INTEGER
  ones = 1
  at = [(4 * i, i = 0, most - 1)]
  in = [(100 * me + i, i = 0, most - 1)]
  out = -1
  call MPI_Ialltoallw(in, ones, at, kinds, out, ones, at, kinds, MPI_COMM_WORLD, request, error)
  call MPI_Wait(request, MPI_STATUS_IGNORE, error)
  if (all(out(:n) == [(100 * i + me, i = 0, n - 1)]) .and. all(out(n + 1:) == -1)) print '(a)', 'all right'
  call MPI_Finalize(error)
end program
