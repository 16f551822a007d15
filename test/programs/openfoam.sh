# OpenFOAM: a cavity with a moving lid; the pressure by conjugate gradients.
packages="openfoam" mpi=openmpi ranks=4
tolerance=1e-6 why="another order of sums changes the last digits of a residual"
gain="nothing: it sums by blocking calls, and its exchanges are messages, some of them buffered"
dictionary() # FILE CLASS: its text is standard input
{
    printf 'FoamFile { version 2.0; format ascii; class %s; object %s; }\n' "$2" "${1##*/}" >"$1"
    cat >>"$1"
}
prepare()
{
    export WM_PROJECT_DIR=/usr/share/openfoam
    mkdir -p 0 constant system
    dictionary system/blockMeshDict dictionary <<'END'
vertices ((0 0 0) (1 0 0) (1 1 0) (0 1 0) (0 0 .1) (1 0 .1) (1 1 .1) (0 1 .1));
blocks (hex (0 1 2 3 4 5 6 7) (40 40 1) simpleGrading (1 1 1));
edges ();
boundary (
    lid { type wall; faces ((3 7 6 2)); }
    walls { type wall; faces ((0 4 7 3) (2 6 5 1) (1 5 4 0)); }
    sides { type empty; faces ((0 3 2 1) (4 5 6 7)); }
);
END
    dictionary system/controlDict dictionary <<'END'
startFrom startTime; startTime 0; stopAt endTime; endTime 0.1; deltaT 0.005;
writeControl timeStep; writeInterval 20;
END
    dictionary system/fvSchemes dictionary <<'END'
ddtSchemes { default Euler; } gradSchemes { default Gauss linear; } divSchemes { div(phi,U) Gauss linear; }
laplacianSchemes { default Gauss linear orthogonal; } interpolationSchemes { default linear; }
snGradSchemes { default orthogonal; }
END
    dictionary system/fvSolution dictionary <<'END'
solvers {
    p { solver PCG; preconditioner diagonal; tolerance 1e-8; relTol 0; } pFinal { $p; }
    U { solver smoothSolver; smoother symGaussSeidel; tolerance 1e-8; relTol 0; }
}
PISO { nCorrectors 2; nNonOrthogonalCorrectors 0; pRefCell 0; pRefValue 0; }
END
    dictionary system/decomposeParDict dictionary <<'END'
numberOfSubdomains 4; method simple; simpleCoeffs { n (2 2 1); delta 0.001; }
END
    dictionary constant/transportProperties dictionary <<'END'
nu [0 2 -1 0 0 0 0] 0.01;
END
    dictionary 0/p volScalarField <<'END'
dimensions [0 2 -2 0 0 0 0]; internalField uniform 0;
boundaryField { lid { type zeroGradient; } walls { type zeroGradient; } sides { type empty; } }
END
    dictionary 0/U volVectorField <<'END'
dimensions [0 1 -1 0 0 0 0]; internalField uniform (0 0 0);
boundaryField { lid { type fixedValue; value uniform (1 0 0); } walls { type noSlip; } sides { type empty; } }
END
    blockMesh >mesh.log 2>&1 && decomposePar -force >parts.log 2>&1
}
command_line="env WM_PROJECT_DIR=/usr/share/openfoam icoFoam -parallel"
numbers()
{
    sed -n '/^Courant/p; s/, Final residual.*//p' | tr -d ,
}
