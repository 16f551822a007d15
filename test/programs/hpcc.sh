# HPCC: HPL, RandomAccess, PTRANS, FFT and STREAM; what it says of the results, not of the speed.
packages="hpcc" mpi=openmpi ranks=4
gain="nothing by itself: HPL and RandomAccess bring collectives of their own"
prepare()
{
    # Two title lines, then a value and its name each, as HPL reads them: order 256, blocks of 32, a grid of
    # 2 by 2; then the orders and blocks of PTRANS.
    cat >hpccinf.txt <<END
HPCC input
of nbcshim's own
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
256          Ns
1            # of NBs
32           NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
2            Ps
2            Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
##### This line (no. 32) is ignored (it serves as a separator). ######
0            Number of additional problem sizes for PTRANS
256          values of N
0            number of additional blocking sizes for PTRANS
32           values of NB
END
}
program()
{
    rm -f hpccoutf.txt
    echo hpcc
}
numbers()
{
    cat >/dev/null # it writes a file
    awk '/PASSED|FAILED/ { print $NF }
        /^(Success|.*_(errors|ErrorsFraction))=/ { sub(/=/, " "); print }
        /^PTRANS_residual=/ { sub(/.*=/, ""); print ($0 < 16) }' hpccoutf.txt
}
