# Quantum ESPRESSO: the energy of silicon, with a pseudopotential of the package.
packages="quantum-espresso quantum-espresso-data" mpi=openmpi ranks=2
tolerance=1e-6 why="sums over plane waves in another order"
gain="between hosts with a slow network, NBCSHIM_BLOCKING=own (below)"
prepare()
{
    cat >si.in <<'END'
&control
  prefix = 'si', pseudo_dir = '/usr/share/espresso/pseudo', outdir = 'tmp'
/
&system
  ibrav = 2, celldm(1) = 10.2, nat = 2, ntyp = 1, ecutwfc = 16
/
&electrons
  conv_thr = 1e-9
/
ATOMIC_SPECIES
  Si 28.086 Si.pz-vbc.UPF
ATOMIC_POSITIONS alat
  Si 0.00 0.00 0.00
  Si 0.25 0.25 0.25
K_POINTS automatic
  2 2 2 1 1 1
END
}
program()
{
    rm -rf tmp
    echo pw.x -in si.in
}
numbers()
{
    awk '/^!.*total energy|one-electron contribution|hartree contribution|xc contribution|ewald contribution/ { print $(NF - 1) }'
}
