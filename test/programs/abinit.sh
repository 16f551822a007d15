# ABINIT: the energy of silicon, with a pseudopotential of its package.
packages="abinit abinit-data" mpi=openmpi ranks=2
tolerance=1e-8 why="sums over k-points and bands in another order"
gain="nothing: blocking allreduces over k-points, and few"
prepare()
{
    cat >si.abi <<'END'
pp_dirpath "/usr/share/abinit/psp"
pseudos "14-Si.nlcc.fhi"
acell 3*10.18
rprim 0.0 0.5 0.5  0.5 0.0 0.5  0.5 0.5 0.0
ntypat 1  znucl 14  natom 2  typat 1 1
xred 0.0 0.0 0.0  0.25 0.25 0.25
ecut 6.0  kptopt 1  ngkpt 2 2 2  nshiftk 4
shiftk 0.5 0.5 0.5  0.5 0.0 0.0  0.0 0.5 0.0  0.0 0.0 0.5
nstep 12  toldfe 1.0d-8
prtwf 0  prtden 0  prteig 0
END
}
program()
{
    rm -f si.abo* sio_* tmp*
    echo abinit si.abi
}
numbers()
{
    cat >/dev/null # it writes a file
    awk '$1 ~ /^(kinetic|hartree|xc|Ewald|non_local_psp|total_energy)$/ && $2 == ":" { print $3 }' si.abo
}
