# MIT Photonic Bands: the bands of a square lattice of rods. Debian calls it a version for MPICH; it needs Open MPI.
packages="mpb-mpi" mpi=openmpi ranks=2
tolerance=1e-5 why="sums over plane waves in another order"
gain="nothing on one node: the dot products of its solver are blocking allreduces"
prepare()
{
    cat >rods.ctl <<'END'
(set! geometry-lattice (make lattice (size 1 1 no-size)))
(set! geometry (list (make cylinder (center 0 0 0) (radius 0.2) (height infinity) (material (make dielectric (epsilon 11.56))))))
(set! k-points (interpolate 2 (list (vector3 0 0 0) (vector3 0.5 0 0) (vector3 0.5 0.5 0))))
(set! resolution 32)
(set! num-bands 6)
(run-tm)
END
}
command_line="mpb-mpi rods.ctl"
numbers()
{
    awk -F ', *' '/^tmfreqs:/ && $2 ~ /[0-9]/ { for (i = 7; i <= NF; i++) print $i }'
}
