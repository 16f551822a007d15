# LAMMPS: a melt of 4,000 Lennard-Jones particles.
packages="lammps" mpi=openmpi ranks=4
tolerance=1e-5 why="forces are added in the order in which messages arrive"
gain="nothing: its collectives are few and blocking"
prepare()
{
    cat >in.melt <<END
units lj
lattice fcc 0.8442
region box block 0 10 0 10 0 10
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
fix 1 all nve
thermo 20
run 100
END
}
command_line="lmp -in in.melt -log none"
numbers()
{
    awk '/^Step/ { on = 1; next } /^Loop/ { on = 0 } on'
}
