# Meep: light in a straight waveguide, the flux through two planes.
packages="meep-openmpi" mpi=openmpi ranks=4
tolerance=1e-6 why="sums over the cells in another order"
gain="nothing: messages between neighbors; its allreduces are for output"
prepare()
{
    cat >guide.ctl <<'END'
(set! geometry-lattice (make lattice (size 12 6 no-size)))
(set! geometry (list (make block (center 0 0) (size infinity 1 infinity) (material (make dielectric (epsilon 12))))))
(set! sources (list (make source (src (make gaussian-src (frequency 0.15) (fwidth 0.1))) (component Ez) (center -4 0) (size 0 1))))
(set! pml-layers (list (make pml (thickness 1.0))))
(set! resolution 8)
(define near (add-flux 0.15 0.05 3 (make flux-region (center -2 0) (size 0 3))))
(define far (add-flux 0.15 0.05 3 (make flux-region (center 4 0) (size 0 3))))
(run-until 60)
(display-fluxes near far)
END
}
command_line="meep guide.ctl"
numbers()
{
    awk -F '[, ]+' '/^flux1:/ { print $2, $3, $4 }'
}
