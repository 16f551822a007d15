# MUMPS: the small system of its package.
packages="mumps-test" mpi=openmpi ranks=2
tolerance=1e-10 why="the factors of the fronts are added in the order of messages"
gain="nothing: its collectives are blocking and few"
input=/usr/lib/mumps/input_simpletest_real
prepare()
{
    [ -r "$input" ]
}
command_line="/usr/lib/mumps/dsimpletest"
numbers()
{
    awk '/Solution is/ { for (i = 3; i <= NF; i++) print $i }'
}
