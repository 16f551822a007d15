# GROMACS: 216 molecules of water, with the force field of the package.
packages="gromacs gromacs-data" mpi=openmpi ranks=2
tolerance=2e-4 why="steps of single precision, forces in the order in which messages arrive"
gain="nothing: its collectives are few, small and blocking"
prepare()
{
    cat >md.mdp <<'END'
integrator = md
nsteps = 40
dt = 0.002
nstcalcenergy = 10
nstenergy = 10
nstlog = 10
cutoff-scheme = Verlet
coulombtype = PME
rcoulomb = 0.8
rvdw = 0.8
fourierspacing = 0.16
constraints = h-bonds
END
    cat >topol.top <<'END'
#include "oplsaa.ff/forcefield.itp"
#include "oplsaa.ff/spc.itp"
[ system ]
water
[ molecules ]
SOL 216
END
    gmx -quiet grompp -f md.mdp -c "$(find /usr/share/gromacs/top -name spc216.gro)" -p topol.top -o run.tpr >grompp.log 2>&1
}
program()
{
    rm -f run.log run.edr run.gro run.cpt
    echo gmx_mpi -quiet mdrun -s run.tpr -deffnm run -ntomp 1 -reprod
}
numbers()
{
    cat >/dev/null # it writes a file
    awk '/Total Energy/ { getline; print $1 }' run.log
}
messages()
{
    sed '/^NOTE:/,/^$/d; /load balancing report:/,/^$/d' # advice, which depends on times
}
