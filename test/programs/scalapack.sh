# ScaLAPACK's own tests of LU and QR, over BLACS: residuals, and what passed.
packages="scalapack-mpi-test scalapack-test-common" mpi=both ranks=2
tolerance=1e-2 why="residuals of rounding errors"
gain="nothing by itself: broadcasts and reductions of BLACS are messages, or blocking"
prepare()
{
    cat >LU.dat <<END
'LU, orders 31 and 57'
'of the project'
'LU.out'  output file
6         device
2         number of sizes
31 57     M
31 57     N
1         number of NB
4         NB
1         number of NRHS
3         NRHS
1         number of NBRHS
3         NBRHS
2         number of grids
1 2       P
2 1       Q
1.0       threshold
F         condition and refinement
END
}
program()
{
    echo "/usr/lib/x86_64-linux-gnu/scalapack/$mpi-tests/xdlu"
}
numbers()
{
    # The times of a row are left out.
    awk '/PASSED|FAILED/ { print $1, $2, $3, $4, $NF } /tests completed|tests passed|tests failed/'
}
