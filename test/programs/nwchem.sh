# NWChem: the Hartree-Fock energy of a water molecule.
packages="nwchem-openmpi nwchem-data" mpi=openmpi ranks=2
tolerance=1e-8 why="tasks are given out in the order in which ranks ask"
gain="nothing: Global Arrays uses messages and blocking collectives"
prepare()
{
    cat >water.nw <<END
start water
geometry units angstrom noautosym
  O 0.000000 0.000000 -0.065587
  H 0.000000 -0.757136 0.520545
  H 0.000000 0.757136 0.520545
end
basis
  * library 6-31g
end
task scf energy
END
}
program()
{
    rm -f water.db water.movecs
    echo nwchem.openmpi water.nw
}
numbers()
{
    awk '/Total SCF energy|One-electron energy|Two-electron energy|Nuclear repulsion energy/ { print $NF }'
}
