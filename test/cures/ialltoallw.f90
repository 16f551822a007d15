! SPDX-License-Identifier: MIT
! The case fortran_ialltoallw: several MPI_Ialltoallw pending, whose arrays of datatypes the Fortran binding
! of the MPI converts, with and without MPI_IN_PLACE. The datatype is freed while they are pending.
program ialltoallw
    use mpi
    implicit none
    integer, parameter :: many = 8
    integer :: rank, ranks, i, k, error, faults = 0, derived
    integer :: requests(2 * many)
    integer, allocatable :: ones(:), places(:), types(:), out(:, :), in(:, :), both(:, :)
    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
    allocate (ones(ranks), places(ranks), types(ranks))
    allocate (out(ranks, many), in(ranks, many), both(ranks, many))
    ones = 1
    call MPI_Type_contiguous(1, MPI_INTEGER, derived, error)
    call MPI_Type_commit(derived, error)
    types = derived
    in = -1
    do i = 1, ranks
        places(i) = 4 * (i - 1)
        do k = 1, many
            out(i, k) = 10000 * rank + 100 * i + k
        end do
    end do
    both = out
    do k = 1, many
        call MPI_Ialltoallw(out(1, k), ones, places, types, in(1, k), ones, places, types, &
                            MPI_COMM_WORLD, requests(k), error)
        call MPI_Ialltoallw(MPI_IN_PLACE, ones, places, types, both(1, k), ones, places, types, &
                            MPI_COMM_WORLD, requests(many + k), error)
    end do
    types = MPI_DATATYPE_NULL
    call MPI_Type_free(derived, error)
    call MPI_Waitall(2 * many, requests, MPI_STATUSES_IGNORE, error)
    do k = 1, many
        do i = 1, ranks
            if (in(i, k) /= 10000 * (i - 1) + 100 * (rank + 1) + k) faults = faults + 1
            if (both(i, k) /= in(i, k)) faults = faults + 1
        end do
    end do
    if (faults > 0) print *, 'wrong:', faults, 'elements'
    call MPI_Finalize(error)
    if (faults > 0) stop 1
end program ialltoallw
