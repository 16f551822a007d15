# For quickstart (bash), whose functions it uses: what a site does with nbcshim, from clean trees. A step
# whose programs are not there says so and passes: Debian has them in dpkg-dev, debhelper, lintian,
# abigail-tools, environment-modules, slurmd, slurmctld, munge, mmdebstrap and charliecloud; Spack is not in Debian.

site=$root/_build/site

site_lacks() # program...
{
    local program
    for program; do
        command -v "$program" >/dev/null || { echo "skipped: no $program" && return 0; }
    done
    return 1
}

# Debian's packages, unpacked in _build/site/packages instead of installed: some exclude others.
site_unpack() # package...
{
    local debs=$site/debs package
    mkdir -p "$debs" "$site/packages" || return 1
    for package; do
        compgen -G "$debs/${package}_*.deb" >/dev/null ||
            (cd "$debs" && apt-get download "$package") ||
            { echo "skipped: apt-get download $package" && return 1; }
        dpkg -x "$debs/${package}"_*.deb "$site/packages" || return 1
    done
}

# The sources of a commit in a directory of their own, with configure.
site_sources() # commit directory
{
    rm -rf "$2" && mkdir -p "$2" && git archive "$1" | tar -x -C "$2" &&
        (cd "$2" && libtoolize -i -c && autoreconf -i)
}

# The Debian package: built, without complaints of lintian, installed below a root of its own, where it
# works with both MPIs, and removed.
site_debian()
{
    local tree=$site/debian/nbcshim image=$site/image mpi lib left
    site_lacks dpkg-buildpackage dh lintian && return
    rm -rf "$site/debian" "$image"
    site_sources HEAD "$tree" &&
        (cd "$tree" && DEB_BUILD_OPTIONS="nocheck parallel=$(nproc)" dpkg-buildpackage -us -uc -b) || return 1
    lintian --allow-root --fail-on error,warning "$site"/debian/nbcshim_*.changes || return 1
    mkdir -p "$image"/var/lib/dpkg/{info,updates} && touch "$image"/var/lib/dpkg/{status,available} &&
        dpkg --root="$image" --force-depends --force-not-root -i "$site"/debian/nbcshim_*.deb || return 1
    for mpi in $mpis; do
        lib=$(dirname "$image"/usr/lib/*/nbcshim/$mpi/libnbcshim.so)
        LD_LIBRARY_PATH=$lib timeout 120 mpiexec.$mpi -n 2 "$image/usr/bin/nbcinfo.$mpi" --selftest --seconds 6 || return 1
        "$image/usr/bin/nbcrun" --print "$image/usr/bin/nbcinfo.$mpi" | grep "/nbcshim/$mpi/libnbcshim.so" || return 1
    done
    dpkg --root="$image" --force-not-root -P nbcshim || return 1
    left=$(find "$image" ! -type d ! -path "$image/var/*")
    [ -z "$left" ] || { echo "left behind: $left" && return 1; }
    echo "built, lintian without complaints, installed, selftest of both MPIs, removed"
}

# The last release and this version of one MPI in a prefix: a program that is linked with the old library
# runs with the new one, whose interface has what the old one has; each goes without the other.
site_versions()
{
    local prefix=$site/prefix old changes
    old=$(sed -n '2,$s/^nbcshim \([0-9.]*\) (2.*/\1/p' NEWS | head -n 1)
    old=$(git log -S"nbcshim $old (2" --format=%h -- NEWS | tail -n 1)
    [ -n "$old" ] || { echo "no last release in the history" && return 1; }
    rm -rf "$prefix"
    site_version "$old" old && site_version HEAD new || return 1
    "$prefix/bin/nbcc.old" -o "$site/app" test/tools/app.c &&
        LD_LIBRARY_PATH=$prefix/lib/nbcshim/new timeout 60 mpiexec.mpich -n 2 "$site/app" || return 1
    if command -v abidiff >/dev/null; then
        abidiff --no-added-syms "$prefix"/lib/nbcshim/{old,new}/libnbcshim.so
        [ $(($? & 11)) = 0 ] || return 1 # 1, 2: it failed; 4: a change; 8: an incompatible one
    fi
    changes=$(comm -23 <(site_names old) <(site_names new))
    [ -z "$changes" ] || { echo "names of the last release that are gone: $changes" && return 1; }
    make -C "$site/new/build" uninstall && timeout 60 "$prefix/bin/nbcrun" mpiexec.mpich -n 2 "$site/app" &&
        make -C "$site/old/build" uninstall || return 1
    [ -z "$(find "$prefix" ! -type d)" ] || { find "$prefix" ! -type d && return 1; }
    echo "$old and this version: beside each other, one under the program of the other, and gone"
}

site_version() # commit name
{
    site_sources "$1" "$site/$2" && mkdir "$site/$2/build" && cd "$site/$2/build" || return 1
    { ../configure MPICC=mpicc.mpich --prefix="$site/prefix" --enable-side-by-side="$2" &&
        make -j "$(nproc)" && make install; } || return 1
    cd "$root"
}

site_names() # name
{
    nm -D --defined-only "$site/prefix/lib/nbcshim/$1/libnbcshim.so" | awk '{ print $NF }' | sort
}

# The module file under Environment Modules and Lmod.
site_modules()
{
    rm -rf "$site/modules" && mkdir -p "$site/modules/nbcshim" &&
        cp _install/mpich/lib/modulefiles/nbcshim "$site/modules/nbcshim/this" || return 1
    [ ! -f /usr/share/modules/init/bash ] || site_module /usr/share/modules/init/bash || return 1
    site_lmod
}

site_module() # init
{
    env -u LOADEDMODULES -u MODULEPATH -u _LMFILES_ bash -c ". '$1' && module use '$site/modules' &&
        module load nbcshim/this && [ \"\$(command -v nbcrun)\" = '$root/_install/mpich/bin/nbcrun' ] &&
        nbcc -o '$site/module' test/tools/app.c && timeout 60 mpiexec.mpich -n 2 '$site/module' &&
        module list 2>&1 | grep nbcshim/this && module unload nbcshim && ! command -v nbcrun" || return 1
    echo "loaded, a program compiled and run, unloaded: $1"
}

# Debian's Lmod excludes Environment Modules, so it is unpacked, and its paths are changed to where it is.
site_lmod()
{
    local at=$site/packages
    site_lacks tclsh && return
    site_unpack lmod lua5.3 lua-bit32 lua-filesystem lua-json lua-lpeg lua-posix lua-term || return 0
    find "$at/usr/share/lmod" -type f -exec grep -lI /usr/ {} + |
        xargs sed -i -E "s,$at,,g; s,/usr/(share/(lmod|lua)|lib/[^ /]*/lua|bin/lua5),$at/usr/\\1,g" || return 1
    LD_LIBRARY_PATH=$(echo "$at"/usr/lib/*-linux-gnu) site_module "$at/usr/share/lmod/lmod/init/bash"
}

# The Debian package of site_debian in an image, and each rank in a container of its own: the launcher is that
# of this machine, nbcrun and the library are those of the image. Without --join, UCX
# cannot share memory between the ranks, with nbcshim or without.
site_container()
{
    local image=$site/container mpi launch
    site_lacks mmdebstrap ch-run && return
    rm -rf "$image"
    mmdebstrap --variant=minbase --include=mpich,openmpi-bin bookworm "$image" &&
        cp "$site"/debian/nbcshim_*.deb "$image/opt/nbcshim.deb" && chroot "$image" dpkg -i /opt/nbcshim.deb || return 1
    for mpi in $mpis; do
        beside_launch $mpi NBCSHIM_STATS=1
        launch+=(env USER=root ch-run --join --join-ct=2 --join-tag="$mpi$$" "$image" --)
        mpicc.$mpi -w -o "$image/opt/app.$mpi" examples/poisson_cg.c -lm &&
            beside_run "$site/container.log" "${launch[@]}" nbcrun "/opt/app.$mpi" 24 &&
            beside_active "$site/container.log" && "${launch[@]}" "nbcinfo.$mpi" --selftest --seconds 6 || return 1
    done
    echo "Charliecloud $(USER=root ch-run --version 2>&1): both MPIs, each rank in a container, nbcrun and selftest within"
}

# Slurm with two nodes on this machine, as doc/site.md has it. It needs root, for munge.
site_slurm()
{
    local slurm=$site/slurm status
    site_lacks slurmctld slurmd srun munged mpicc.mpich && return
    [ "$(id -u)" = 0 ] || { echo "skipped: not root" && return; }
    export SLURM_CONF=$slurm/slurm.conf
    site_start_slurm >"$site/slurm.log" 2>&1
    site_use_slurm
    status=$?
    for file in "$slurm"/*.pid; do
        kill "$(cat "$file")"
    done
    unset SLURM_CONF
    return $status
}

site_start_slurm()
{
    local node
    rm -rf "$slurm" && mkdir -p "$slurm"/{state,n1,n2} || return 1
    cat >"$SLURM_CONF" <<END
ClusterName=site
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmUser=root
SlurmctldPort=16917
StateSaveLocation=$slurm/state
SlurmdSpoolDir=$slurm/%n
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmdPidFile=$slurm/%n.pid
SlurmctldLogFile=$slurm/slurmctld.log
SlurmdLogFile=$slurm/%n.log
AuthType=auth/munge
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
NodeName=n1 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=16921 CPUs=2 State=UNKNOWN
NodeName=n2 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=16922 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=10 State=UP OverSubscribe=YES:8
END
    munge -n | unmunge || { install -d -o munge /run/munge && runuser -u munge -- munged; }
    slurmctld
    for node in n1 n2; do
        slurmd -N $node
    done
    for ((i = 0; i < 30; i++)); do
        [ "$(sinfo -h -t idle -o %D)" != 2 ] || return 0
        sleep 1
    done
}

site_use_slurm()
{
    local mpich=_install/mpich/bin openmpi=_install/openmpi/bin job
    timeout 120 srun -N 2 -n 2 -O --mpi=pmi2 $mpich/nbcinfo --selftest --seconds 6 || return 1
    timeout 120 srun -N 1 -n 2 -O --mpi=pmix $openmpi/nbcinfo --selftest --seconds 6 || return 1
    timeout 60 srun -N 1 -n 2 -O --mpi=pmix $mpich/nbcinfo --selftest --seconds 2 2>&1 |
        grep '^nbcshim: SLURM_STEP_NUM_TASKS=2, but each' || return 1
    mpicc.mpich -o "$site/hang" -x c - <<'END' || return 1
#include <mpi.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int rank;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (unsigned left = 60; rank == 1 && left > 0;)
        left = sleep(left); /* a signal ends it */
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return MPI_Finalize();
}
END
    job=$(printf '#!/bin/bash\n%s srun --mpi=pmi2 %s\n' "$mpich/nbcrun" "$site/hang" |
        sbatch --parsable -N 2 -n 2 -O -o "$site/hang.out") || return 1
    sleep 10
    scancel -s USR1 "$job"
    sleep 5
    scancel "$job"
    grep 'nbcshim: rank 0: barrier:.* waits for a message from rank 1' "$site/hang.out" || return 1
    echo "srun with both MPIs, a launcher for another MPI, scancel -s USR1"
}

# The archive, made twice under other circumstances, and its sum.
site_archive()
{
    packaging/release --archive "$(site_version_here)"
}

# The recipe of Spack, with the archive of site_archive, MPICH of the system and nothing that is downloaded.
site_spack()
{
    local at=$site/spack name program
    site_lacks spack mpicc.mpich && return
    rm -rf "$at" && mkdir -p "$at"/{repo/packages/nbcshim,conf,mpich/bin} &&
        cp packaging/spack.py "$at/repo/packages/nbcshim/package.py" || return 1
    for program in mpicc mpicxx mpif77 mpif90 mpiexec; do
        ln -s "$(command -v $program.mpich)" "$at/mpich/bin/$program"
    done
    printf 'repo:\n  namespace: site\n' >"$at/repo/repo.yaml"
    printf 'repos:\n- %s\n' "$at/repo" >"$at/conf/repos.yaml"
    printf 'config:\n  install_tree: {root: %s}\n  build_stage: [%s]\n' "$at/tree" "$at/stage" >"$at/conf/config.yaml"
    {
        printf 'packages:\n  all:\n    providers: {mpi: [mpich], pkgconfig: [pkg-config]}\n'
        for name in mpich@4.0.2 uthash@2.3.0 pkg-config@1.8 gmake@4.3 gnuconfig@2021; do
            printf '  %s:\n    buildable: false\n    externals: [{spec: %s, prefix: %s}]\n' "${name%@*}" "$name" \
                "$([ "$name" = mpich@4.0.2 ] && echo "$at/mpich" || echo /usr)"
        done
    } >"$at/conf/packages.yaml"
    (cd "_release/$(site_version_here)" && site_use_spack)
}

site_use_spack()
{
    local spack="spack -C $at/conf" prefix
    export SPACK_USER_CONFIG_PATH=$at/conf SPACK_USER_CACHE_PATH=$at/cache SPACK_DISABLE_LOCAL_CONFIG=1
    $spack install --no-checksum nbcshim && prefix=$($spack location -i nbcshim) &&
        timeout 60 mpiexec.mpich -n 2 "$prefix/bin/nbcinfo" --selftest --seconds 6 &&
        "$prefix/bin/nbcc" -o "$site/spacked" "$root/test/tools/app.c" &&
        timeout 60 mpiexec.mpich -n 2 "$site/spacked" && $spack uninstall -y nbcshim && [ ! -e "$prefix" ] || return 1
    echo "$(spack --version): installed, selftest, a program compiled and run, removed"
}

site_version_here()
{
    sed -n 's/^AC_INIT(\[nbcshim\], \[\(.*\)\].*/\1/p' configure.ac
}

# The selftest on more ranks than there are processors: a minute at most, as nbcinfo --help has it.
site_ranks()
{
    local mpi ranks began
    for mpi in $mpis; do
        for ranks in 8 16; do
            began=$SECONDS
            timeout 120 mpiexec.$mpi $([ $mpi = mpich ] || echo --oversubscribe) -n $ranks \
                _install/$mpi/bin/nbcinfo --selftest || return 1
            echo "$mpi, $ranks ranks: $((SECONDS - began)) s"
            [ $((SECONDS - began)) -le 60 ] || return 1
        done
    done
    echo "8 and 16 ranks of both MPIs: all is right, in a minute each"
}

soak_site()
{
    local part
    mkdir -p "$site"
    for part in archive debian container versions modules slurm spack ranks; do
        step site-$part check_command site-$part site_$part
    done
    soak_beside
}
