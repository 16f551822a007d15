# CP2K: the energy of a water molecule, plane waves and Gaussians, basis and potential of the package.
packages="cp2k cp2k-data" mpi=openmpi ranks=4
tolerance=1e-9 why="sums over grids in another order"
gain="between hosts with a slow network, NBCSHIM_BLOCKING=own (below)"
prepare()
{
    cat >water.inp <<END
&GLOBAL
  PROJECT water
  RUN_TYPE ENERGY
  PRINT_LEVEL LOW
&END GLOBAL
&FORCE_EVAL
  METHOD Quickstep
  &DFT
    BASIS_SET_FILE_NAME GTH_BASIS_SETS
    POTENTIAL_FILE_NAME GTH_POTENTIALS
    &MGRID
      CUTOFF 140
    &END MGRID
    &SCF
      MAX_SCF 12
      EPS_SCF 1.0E-6
      SCF_GUESS ATOMIC
    &END SCF
    &XC
      &XC_FUNCTIONAL PADE
      &END XC_FUNCTIONAL
    &END XC
  &END DFT
  &SUBSYS
    &CELL
      ABC 5.0 5.0 5.0
    &END CELL
    &COORD
      O 0.000000 0.000000 -0.065587
      H 0.000000 -0.757136 0.520545
      H 0.000000 0.757136 0.520545
    &END COORD
    &KIND H
      BASIS_SET DZVP-GTH
      POTENTIAL GTH-PADE-q1
    &END KIND
    &KIND O
      BASIS_SET DZVP-GTH
      POTENTIAL GTH-PADE-q6
    &END KIND
  &END SUBSYS
&END FORCE_EVAL
END
}
program()
{
    rm -f water-*
    echo cp2k.psmp -i water.inp
}
numbers()
{
    awk '/Total FORCE_EVAL|Total energy:|Core Hamiltonian energy|Hartree energy/ { print $NF }'
}
