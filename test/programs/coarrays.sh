# OpenCoarrays: a Fortran program whose sums and broadcasts are those of the language.
packages="libcoarrays-mpich-dev gfortran" mpi=mpich ranks=2
tolerance=1e-12 why="sums over images in another order"
gain="nothing by itself: co_sum and co_broadcast are blocking collectives, which NBCSHIM=on carries out"
prepare()
{
    cat >sums.f90 <<'END'
program sums
    implicit none
    real(8) :: x(1000), total, least
    integer :: i, step
    do i = 1, size(x)
        x(i) = sin(dble(i * this_image()))
    end do
    do step = 1, 200
        total = sum(x * x)
        call co_sum(total)
        least = minval(x)
        call co_min(least)
        x = x / sqrt(total) + 0.001d0 * least
    end do
    call co_sum(x, result_image=1)
    call co_broadcast(total, 1)
    sync all
    if (this_image() == 1) print '(3es20.12)', total, least, sum(x)
end program
END
    caf.mpich -O1 -o sums sums.f90
}
command_line="./sums"
numbers()
{
    awk 'NF == 3' # UCX may warn there
}
