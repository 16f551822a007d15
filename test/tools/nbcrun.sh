#!/usr/bin/env bash
# nbcrun: what command it makes of a command. The launchers and the MPI libraries are stand-ins made
# here, but for the last test, which runs the real launcher.

. "$(dirname "$0")/../lib.sh"
unset LD_PRELOAD
forget_settings
allow_late_sanitizer

# --- stand-ins ------------------------------------------------------------------------------------

# Three MPI libraries; for each a nbcshim and a program.
make_mpi() # name soname [shim]
{
    local libs=$scratch/$1/mpi shim=${3:-libnbcshim.so}
    mkdir -p "$libs" "$scratch/$1/lib" "$scratch/$1/bin"
    echo 'int MPI_Init(void); int MPI_Init(void) { return 0; }' >"$scratch/mpi.c"
    echo 'int MPI_Init(void); int main(void) { return MPI_Init(); }' >"$scratch/app.c"
    echo 'int MPI_Init(void); int nbcshim_version(void); int nbcshim_version(void)
        { return MPI_Init(); }' >"$scratch/shim.c"
    $CC -shared -fPIC -Wl,-soname,"$2" -o "$libs/$2" "$scratch/mpi.c" &&
        $CC -o "$scratch/$1/app" "$scratch/app.c" "$libs/$2" -Wl,-rpath,"$libs" &&
        $CC -shared -fPIC -o "$scratch/$1/lib/$shim" "$scratch/shim.c" "$libs/$2" \
            -Wl,-rpath,"$libs" &&
        cp tools/nbcrun "$scratch/$1/bin/nbcrun"
}

# A launcher that shows its arguments one a line, and what it is preloaded with itself.
make_launcher() # file version-text
{
    cat >"$1" <<END
#!/bin/sh
if [ "\$1" = --version ]; then echo "$2"; exit 0; fi
echo "launcher preloads '\$LD_PRELOAD'"
printf "%s\\\\n" "\$@"
exit 7
END
    chmod +x "$1"
}

mkdir "$scratch/hydra" "$scratch/ompi" "$scratch/other" "$scratch/slurm"
make_mpi a libmpich.so.99 && make_mpi b libmpi.so.99 && make_mpi abi libmpi_abi.so.99 libnbcshim_abi.so
result $? "stand-ins compile"
make_launcher "$scratch/hydra/mpiexec" "HYDRA build details: Version: 9"
make_launcher "$scratch/hydra/mpirun.mine" "HYDRA build details: Version: 9"
make_launcher "$scratch/ompi/mpiexec" "mpiexec (OpenRTE) 9"
make_launcher "$scratch/ompi/mpirun" "mpirun (Open MPI) 9"
make_launcher "$scratch/other/mpiexec" "something else"
make_launcher "$scratch/slurm/srun" "slurm 9"
make_launcher "$scratch/slurm/mylaunch" "?"

echo 'int nothing;' >"$scratch/nothing.c"
other=$scratch/nothing.so
$CC -shared -fPIC -o "$other" "$scratch/nothing.c"

nbcrun=$scratch/a/bin/nbcrun
shim=$scratch/a/lib/libnbcshim.so
app=$scratch/a/app
hydra=$scratch/hydra/mpiexec
ompi=$scratch/ompi/mpiexec
srun=$scratch/slurm/srun
nbcrun_b=$scratch/b/bin/nbcrun
shim_b=$scratch/b/lib/libnbcshim.so
app_b=$scratch/b/app

# --- checks ---------------------------------------------------------------------------------------

# prints NAME TEXT COMMAND...: the command's output is exactly TEXT.
prints()
{
    local name=$1 text=$2 output
    shift 2
    output=$("$@" 2>&1)
    [ "$output" = "$text" ]
    result $? "$name" "expected: $text"$'\n'"got:      $output"
}

# refuses NAME PATTERN COMMAND...: the command exits with 2 and one line that matches.
refuses()
{
    local name=$1 pattern=$2 output status
    shift 2
    output=$("$@" 2>&1)
    status=$?
    [ $status = 2 ] && [[ $output == $pattern ]] && [ "$(wc -l <<<"$output")" = 1 ]
    result $? "$name" "$output"
}

# of_LAUNCHER NAME WORDS ARGUMENT...: behind a launcher of this kind nbcrun makes these words of the arguments.
of_hydra()
{
    prints "hydra: $1" "$hydra $2" "$nbcrun" --print "$hydra" "${@:3}"
}

of_ompi()
{
    prints "Open MPI: $1" "$ompi $2" "$nbcrun_b" --print "$ompi" "${@:3}"
}

of_srun()
{
    prints "srun: $1" "$srun $2" "$nbcrun" --print "$srun" "${@:3}"
}

of_hydra "-genv before the launcher's options" "-genv LD_PRELOAD $shim -n 4 $app x" -n 4 "$app" x
prints "hydra: recognized by another name" \
    "$scratch/hydra/mpirun.mine -genv LD_PRELOAD $shim $app" \
    "$nbcrun" --print "$scratch/hydra/mpirun.mine" "$app"
of_ompi "-x" "-x LD_PRELOAD=$shim_b -n 4 $app_b x" -n 4 "$app_b" x
of_srun "--export" "--export=ALL,LD_PRELOAD=$shim -n 4 $app" -n 4 "$app"
prints "no launcher: the program itself" \
    "env LD_PRELOAD=$shim $app x" "$nbcrun" --print "$app" x
# Debian's name of a program for one MPI, as nwchem.mpich, and our own, as nbcinfo.openmpi.
for name in app.mpich app.openmpi app.hydra; do
    cp "$app" "$scratch/$name"
    prints "no launcher: a program of the name $name" \
        "env LD_PRELOAD=$shim $scratch/$name x" "$nbcrun" --print "$scratch/$name" x
    prints "hydra: behind a launcher it is the program" \
        "$hydra -genv LD_PRELOAD $shim timeout 60 $scratch/$name -env LD_PRELOAD y" \
        "$nbcrun" --print "$hydra" timeout 60 "$scratch/$name" -env LD_PRELOAD y
done
prints "--launcher names the kind of a wrapper" \
    "$scratch/slurm/mylaunch -genv LD_PRELOAD $shim $app" \
    "$nbcrun" --launcher=hydra --print "$scratch/slurm/mylaunch" "$app"
prints "options and their values in two words" \
    "$scratch/slurm/mylaunch -genv LD_PRELOAD $shim_b $app_b" \
    "$nbcrun" --launcher hydra --print --library "$shim_b" "$scratch/slurm/mylaunch" "$app_b"
prints "--library is preloaded" \
    "env LD_PRELOAD=$shim_b $app_b" \
    "$nbcrun" --library="$shim_b" --print "$app_b"

prints "the launcher is not preloaded, arguments stay whole" \
    "launcher preloads ''
-genv
LD_PRELOAD
$shim
-n
2
$app
two words
*
it's" "$nbcrun" "$hydra" -n 2 "$app" "two words" '*' "it's"
"$nbcrun" "$hydra" "$app" >/dev/null
expect "the exit status is the launcher's" test $? = 7

prints "an LD_PRELOAD of the environment comes after ours" \
    "$hydra -genv LD_PRELOAD $shim:$other $app" env LD_PRELOAD="$other" "$nbcrun" --print "$hydra" \
    "$app"
of_hydra "an LD_PRELOAD of the command line is kept, after ours" \
    "-n 2 -genv LD_PRELOAD $shim:$other $app" -n 2 -genv LD_PRELOAD "$other" "$app"
of_hydra "and that of one program too" \
    "-genv LD_PRELOAD $shim -env LD_PRELOAD $shim:$other $app : $app" -env LD_PRELOAD "$other" "$app" : "$app"
of_hydra "and that of a later one" \
    "-genv LD_PRELOAD $shim $app : -n 1 -env LD_PRELOAD $shim:$other ./x : -env LD_PRELOAD $shim:$other $app -env LD_PRELOAD y" \
    "$app" : -n 1 -env LD_PRELOAD "$other" ./x : -env LD_PRELOAD "$other" "$app" -env LD_PRELOAD y
of_hydra "with a sign of equality" \
    "-n 2 -genv=LD_PRELOAD=$shim:$other -env=LD_PRELOAD=$shim:a=b $app -env=LD_PRELOAD=y" \
    -n 2 -genv=LD_PRELOAD="$other" -env=LD_PRELOAD=a=b "$app" -env=LD_PRELOAD=y
printf '#!/bin/sh\n' >"$scratch/script"
chmod +x "$scratch/script"
of_hydra "the arguments of a script stay as they are" \
    "-genv LD_PRELOAD $shim -n 2 $scratch/script -env LD_PRELOAD y" -n 2 "$scratch/script" -env LD_PRELOAD y
of_ompi "so do they" \
    "-x LD_PRELOAD=$shim_b -n 2 $scratch/script -x LD_PRELOAD=y" -n 2 "$scratch/script" -x LD_PRELOAD=y
of_hydra "one that env sets is kept, after ours" \
    "-genv LD_PRELOAD $shim -n 2 env A=1 LD_PRELOAD=$shim:$other $app env LD_PRELOAD=y" \
    -n 2 env A=1 LD_PRELOAD="$other" "$app" env LD_PRELOAD=y
of_ompi "in each context" \
    "-x LD_PRELOAD=$shim_b $app_b : -x LD_PRELOAD=$shim_b env LD_PRELOAD=$shim_b:$other $app_b" \
    "$app_b" : env LD_PRELOAD="$other" "$app_b"
prints "nbcrun goes between another command and the launcher" \
    "launcher preloads ''
-genv
LD_PRELOAD
$shim
-n
2
$app
mpiexec" "$nbcrun" timeout 60 "$hydra" -n 2 "$app" mpiexec
prints "also where it prints" "$hydra -genv LD_PRELOAD $shim $app" "$nbcrun" --print env A=1 "$hydra" "$app"
prints "but not behind a script" "env LD_PRELOAD=$shim timeout 60 $scratch/script $hydra" \
    "$nbcrun" --library="$shim" --print timeout 60 "$scratch/script" "$hydra"
prints "nor behind a program" "env LD_PRELOAD=$shim env $app $hydra" "$nbcrun" --print env "$app" "$hydra"
echo "-n 1 $app_b" >"$scratch/programs"
refuses "Open MPI: a file of programs that lacks ours" \
    "nbcrun: Open MPI does not pass * begin each line of $scratch/programs with -x LD_PRELOAD=$shim_b" \
    "$nbcrun_b" "$ompi" --app "$scratch/programs"
echo "-x LD_PRELOAD=$shim_b -n 1 $app_b" >"$scratch/programs"
of_ompi "one that has it" "-x LD_PRELOAD=$shim_b --app $scratch/programs" --app "$scratch/programs"
of_hydra "in one word, too" "-n 2 -genv LD_PRELOAD=$shim:$other $app" -n 2 -genv LD_PRELOAD="$other" "$app"
of_hydra "and behind two dashes" \
    "-genv LD_PRELOAD $shim --env LD_PRELOAD $shim:$other $app" --env LD_PRELOAD "$other" "$app"
of_ompi "an LD_PRELOAD of the command line is kept, after ours" \
    "-n 2 -x LD_PRELOAD=$shim_b:$other $app_b" -n 2 -x LD_PRELOAD="$other" "$app_b"
of_srun "an LD_PRELOAD of the command line is kept, after ours" \
    "--export=ALL,A=1,LD_PRELOAD=$shim:$other $app" --export=ALL,LD_PRELOAD=$other,A=1 "$app"
prints "srun: what the list has stays whole" \
    "launcher preloads ''
--export=ALL,A=two words,B=*,C=\\t,LD_PRELOAD=$shim
$app" "$nbcrun" "$srun" '--export=ALL,A=two words,B=*,C=\t' "$app"
printf '#!/bin/sh\necho "ran with $LD_PRELOAD"\n' >"$scratch/a=b"
chmod +x "$scratch/a=b"
prints "a program with = in its name" "ran with $other" "$nbcrun" --library="$other" "$scratch/a=b"
of_ompi "every program of several gets it" \
    "-x LD_PRELOAD=$shim_b $app_b : -x LD_PRELOAD=$shim_b $app_b" "$app_b" : "$app_b"
of_ompi "the first one too, where another has an LD_PRELOAD" \
    "-x LD_PRELOAD=$shim_b $app_b : -x LD_PRELOAD=$shim_b -x LD_PRELOAD=$shim_b:$other $app_b" \
    "$app_b" : -x LD_PRELOAD="$other" "$app_b"
of_ompi "the program's own arguments are not touched" \
    "-x LD_PRELOAD=$shim_b $app_b -x LD_PRELOAD=$other" "$app_b" -x LD_PRELOAD="$other"

export NBCSHIM_STATS=1 NBCSHIM_SEGMENT_SIZE=4096
prints "Open MPI: NBCSHIM_ variables are passed on" \
    "$ompi -x NBCSHIM_SEGMENT_SIZE -x NBCSHIM_STATS -x LD_PRELOAD=$shim_b $app_b" \
    bash -c "$nbcrun_b --print $ompi $app_b | sed 's/-x NBCSHIM_STATS -x NBCSHIM_SEGMENT_SIZE/-x NBCSHIM_SEGMENT_SIZE -x NBCSHIM_STATS/'"
of_ompi "but not those that the command line sets" \
    "-x NBCSHIM_STATS -x LD_PRELOAD=$shim_b -x NBCSHIM_SEGMENT_SIZE=1 $app_b" -x NBCSHIM_SEGMENT_SIZE=1 "$app_b"
unset NBCSHIM_SEGMENT_SIZE
of_hydra "they are passed on, before what the command line sets" \
    "-genv NBCSHIM_STATS 1 -genv LD_PRELOAD $shim -genvnone -genv NBCSHIM_STATS 0 $app" \
    -genvnone -genv NBCSHIM_STATS 0 "$app"
prints "hydra: also values with blanks, and those of several variables" \
    "$hydra -genv NBCSHIM_STATS 1 -genv NBCSHIM_TRACE 'a  b*' -genv LD_PRELOAD $shim -envnone $app" \
    env NBCSHIM_TRACE='a  b*' NBCSHIM_TUNING= "$nbcrun" --print "$hydra" -envnone "$app"
of_ompi "a program that sets one does not take it from the others" \
    "-x NBCSHIM_STATS -x LD_PRELOAD=$shim_b $app_b : -x LD_PRELOAD=$shim_b -x NBCSHIM_STATS -x NBCSHIM_STATS=0 $app_b" \
    "$app_b" : -x NBCSHIM_STATS=0 "$app_b"
refuses "Open MPI: a list of variables instead of -x" "*mca_base_env_list excludes the option -x*" \
    "$nbcrun_b" --print "$ompi" --mca mca_base_env_list "A;B" "$app_b"
refuses "Open MPI: also in the environment" "*mca_base_env_list excludes the option -x*" \
    env OMPI_MCA_mca_base_env_list=A "$nbcrun_b" --print "$ompi" "$app_b"
of_srun "NBCSHIM_ variables are passed on where not all are" \
    "--export=A,LD_PRELOAD=$shim,NBCSHIM_STATS $app" --export=A "$app"
of_srun "also where none are, written as two words" \
    "--export LD_PRELOAD=$shim,NBCSHIM_STATS $app" --export NONE "$app"
unset NBCSHIM_STATS
prints "Open MPI: NBCSHIM itself too" \
    "$ompi -x NBCSHIM -x LD_PRELOAD=$shim_b $app_b" \
    env NBCSHIM=on "$nbcrun_b" --print "$ompi" "$app_b"
prints "Open MPI: but not where the command line sets it" \
    "$ompi -x LD_PRELOAD=$shim_b -x NBCSHIM=off $app_b" \
    env NBCSHIM=on "$nbcrun_b" --print "$ompi" -x NBCSHIM=off "$app_b"

refuses "a program of another MPI: both names" "*libmpi.so.99*libmpich.so.99*" \
    "$nbcrun" "$hydra" -n 2 "$app_b"
refuses "the other way round" "*libmpich.so.99*libmpi.so.99*" \
    "$nbcrun_b" "$ompi" -n 2 "$app"
refuses "a program behind a tool" "*libmpi.so.99*libmpich.so.99*" \
    "$nbcrun" "$hydra" -n 2 env A=1 "$app_b"
refuses "a program found on PATH" "*libmpi.so.99*libmpich.so.99*" \
    env PATH="$scratch/b:$PATH" "$nbcrun" "$hydra" -n 2 app
refuses "no command" "*no command*" "$nbcrun"
refuses "unknown option" "*--nonsense*" "$nbcrun" --nonsense "$app"
refuses "unknown kind of launcher" "*cannot determine the kind*" "$nbcrun" "$scratch/other/mpiexec" "$app"
refuses "command that does not exist" "*no such command*" "$nbcrun" "$scratch/nothing"
refuses "library that does not exist" "*cannot read*" "$nbcrun" --library=/nonexistent.so "$app"
refuses "library that is a directory" "*is not a library*" "$nbcrun" --library="$scratch" "$app"
refuses "library that is a text" "*is not a library*" "$nbcrun" --library "$scratch/app.c" "$app"
refuses "a kind of launcher that is none" "*not hydra, openmpi or srun*" "$nbcrun" --launcher mine "$app"
refuses "a directory of reports" "*cannot read*" "$nbcrun" --hang "$scratch"
refuses "more runs than there can be" "*not a number from 1 to 9999*" "$nbcrun" --compare --runs=99999999999999999999 "$app"
echo 'int main(void) { return 0; }' >"$scratch/static.c"
if $CC -static -o "$scratch/static" "$scratch/static.c" 2>/dev/null; then
    prints "a program into which nothing can be preloaded" "nbcrun: warning: $scratch/static is linked statically, so \
that nothing can be preloaded: link it with nbcc
env LD_PRELOAD=$shim $scratch/static" "$nbcrun" --print "$scratch/static"
fi
mkdir -p "$scratch/empty/bin" && cp tools/nbcrun "$scratch/empty/bin"
refuses "no library beside it" "*no libnbcshim.so*" "$scratch/empty/bin/nbcrun" "$app"

ln -s "$nbcrun" "$scratch/link"
prints "called through a link, it finds its library" \
    "env LD_PRELOAD=$shim $app" "$scratch/link" --print "$app"
mkdir -p "$scratch/multi/bin" "$scratch/multi/lib/some-triplet"
cp tools/nbcrun "$scratch/multi/bin"
cp "$shim" "$scratch/multi/lib/some-triplet"
prints "the library in a directory of its architecture" \
    "env LD_PRELOAD=$scratch/multi/lib/some-triplet/libnbcshim.so $app" \
    "$scratch/multi/bin/nbcrun" --print "$app"
# One prefix, two MPIs.
side=$scratch/side
mkdir -p "$side/bin" "$side/lib/nbcshim/a" "$side/lib/nbcshim/b"
cp tools/nbcrun "$side/bin"
cp "$shim" "$side/lib/nbcshim/a"
cp "$shim_b" "$side/lib/nbcshim/b"
prints "side by side: the library for the program's MPI" \
    "env LD_PRELOAD=$side/lib/nbcshim/a/libnbcshim.so $app" "$side/bin/nbcrun" --print "$app"
prints "side by side: that of another program" \
    "$ompi -x LD_PRELOAD=$side/lib/nbcshim/b/libnbcshim.so -n 2 $app_b" \
    "$side/bin/nbcrun" --print "$ompi" -n 2 "$app_b"
refuses "side by side: nothing tells which MPI" "*cannot determine the MPI*" \
    "$side/bin/nbcrun" --print sh -c true
rm "$side/lib/nbcshim/b/libnbcshim.so"
refuses "side by side: no library for the program's MPI" "*has no nbcshim for that MPI*" \
    "$side/bin/nbcrun" --print "$app_b"

# Python: the module mpi4py.MPI is linked with an MPI, and the MPI's file may be that of an environment.
make_python() # directory module mpi
{
    mkdir -p "$scratch/$1"
    printf '#!/bin/sh\nprintf "%%s\\n" "%s" "%s"\n' "$2" "$3" >"$scratch/$1/python3"
    chmod +x "$scratch/$1/python3"
}
environment_mpi=$scratch/environment/lib/libmpich.so.99
mkdir -p "$scratch/environment/lib" && cp "$scratch/a/mpi/libmpich.so.99" "$environment_mpi"
make_python py_a "$app" "$scratch/a/mpi/libmpich.so.99"
make_python py_environment "$app" "$environment_mpi"
make_python py_b "$app_b" "$scratch/b/mpi/libmpi.so.99"
of_hydra "Python with this MPI" "-genv LD_PRELOAD $shim -n 2 $scratch/py_a/python3 x" -n 2 "$scratch/py_a/python3" x
of_hydra "Python with another file of this name: its own one" \
    "-genv LD_PRELOAD $shim:$environment_mpi -n 2 $scratch/py_environment/python3 x" \
    -n 2 "$scratch/py_environment/python3" x
printf '#!%s -u\n' "$scratch/py_environment/python3" >"$scratch/script" && chmod +x "$scratch/script"
of_hydra "a script of Python" "-genv LD_PRELOAD $shim:$environment_mpi -n 2 $scratch/script" -n 2 "$scratch/script"
refuses "Python with another MPI" "*mpi4py of *python3 is linked with libmpi.so.99*libmpich.so.99*" \
    "$nbcrun" --print "$hydra" -n 2 "$scratch/py_b/python3" x
make_mpi lost libmpi.so.19 && rm "$scratch/lost/mpi/libmpi.so.19" # MPICH may have a link of the name 12
prints "an MPI that the dynamic linker does not find, and the launcher of another one" \
    "nbcrun: warning: the dynamic linker does not find libmpi.so.19, which $scratch/lost/lib/libnbcshim.so needs
nbcrun: warning: $ompi is a launcher of Open MPI, but $scratch/lost/lib/libnbcshim.so is for libmpi.so.19
$ompi -x LD_PRELOAD=$scratch/lost/lib/libnbcshim.so sh -c true" \
    "$scratch/lost/bin/nbcrun" --print "$ompi" sh -c true
prints "the launcher of Open MPI and another MPI" \
    "nbcrun: warning: $ompi is a launcher of Open MPI, but $shim is for libmpich.so.99
$ompi -x LD_PRELOAD=$shim $app" \
    "$nbcrun" --print "$ompi" "$app"
make_mpi pmix libmpich.so.99 && pmix=$scratch/pmix/mpi &&
    $CC -shared -fPIC -Wl,-soname,libpmix.so.2 -o "$pmix/libpmix.so.2" "$scratch/nothing.c" &&
    $CC -shared -fPIC -Wl,-soname,libmpich.so.99 -Wl,--no-as-needed -o "$pmix/libmpich.so.99" "$scratch/mpi.c" \
        "$pmix/libpmix.so.2" -Wl,-rpath,"$pmix"
prints "the launcher of Open MPI and an MPI that speaks PMIx" \
    "$ompi -x LD_PRELOAD=$scratch/pmix/lib/libnbcshim.so $scratch/pmix/app" \
    "$scratch/pmix/bin/nbcrun" --print "$ompi" "$scratch/pmix/app"

# The ABI of MPI-5: a library of another name.
shim_abi=$scratch/abi/lib/libnbcshim_abi.so
prints "a program of the ABI" "$ompi -x LD_PRELOAD=$shim_abi $scratch/abi/app" \
    "$scratch/abi/bin/nbcrun" --print "$ompi" "$scratch/abi/app"
refuses "a program that is not of the ABI" "*libmpich.so.99*libmpi_abi.so.99*" \
    "$scratch/abi/bin/nbcrun" "$hydra" "$app"
refuses "a program of the ABI, without a library for it" "*libmpi_abi.so.99*libmpich.so.99*" \
    "$nbcrun" "$hydra" "$scratch/abi/app"
prints "a script, where there is only that library" "env LD_PRELOAD=$shim_abi sh -c true" \
    "$scratch/abi/bin/nbcrun" --print sh -c true
cp "$shim_abi" "$scratch/b/lib"
prints "both libraries: for a program of the ABI" \
    "env LD_PRELOAD=$scratch/b/lib/libnbcshim_abi.so $scratch/abi/app" "$nbcrun_b" --print "$scratch/abi/app"
prints "both libraries: for another one" "env LD_PRELOAD=$shim_b $app_b" "$nbcrun_b" --print "$app_b"
prints "both libraries: for a script" "env LD_PRELOAD=$shim_b sh -c true" "$nbcrun_b" --print sh -c true
mkdir "$side/lib/nbcshim/abi" && cp "$shim_abi" "$side/lib/nbcshim/abi"
prints "side by side: for a program of the ABI" \
    "env LD_PRELOAD=$side/lib/nbcshim/abi/libnbcshim_abi.so $scratch/abi/app" \
    "$side/bin/nbcrun" --print "$scratch/abi/app"

prints "--version" "nbcrun (nbcshim) $VERSION" "$nbcrun" --version
expect "--help" bash -c "$nbcrun --help | grep -q '^Usage: nbcrun'"

# The real launcher, with a library that does nothing. When programs end at once, mpiexec of MPICH
# 4.0.2 dies of SIGPIPE once in a thousand times, without nbcrun as well.
mpi_command 2 "" "" sh -c 'echo "rank: $LD_PRELOAD"; sleep 0.1'
guarded 30 "$scratch/log" "$nbcrun" --library="$other" "${launch[@]}" &&
    [ "$(grep -cE "^rank: $other(:|$)" "$scratch/log")" = 2 ]
result $? "the ranks of the real launcher are preloaded" "$(cat "$scratch/log")"

# Where the program and the library name the MPI, nobody need ask the dynamic linker, which takes most of the
# time.
mkdir "$scratch/slow"
printf '#!/bin/sh\necho asked >>%s\n' "$scratch/asked" >"$scratch/slow/ldd"
chmod +x "$scratch/slow/ldd"
PATH=$scratch/slow:$PATH sh -x "$nbcrun" --print "$hydra" -n 2 "$app" >"$scratch/log" 2>&1
grep -q "LD_PRELOAD" "$scratch/log" && ! grep -q -e "--list" "$scratch/log" && [ ! -e "$scratch/asked" ]
result $? "the dynamic linker is not asked in vain"

# Reports of a thousand ranks, of which each waits for another one, at another place, and each two have a
# communicator; one makes another call.
awk 'BEGIN { for (r = 0; r < 1000; r++) {
    printf "nbcshim: rank %d: in MPI_Wait at app+0x%x\n", r, r
    printf "nbcshim: rank %d: last calls on communicator %d.0: 1 ibarrier of 0\n", r, r / 2
    printf "nbcshim: rank %d: allreduce:ring, number 7 on MPI_COMM_WORLD (rank %d of 1000), pending for %d.0 s, " \
        "round 3 of 5: waits for a message from rank %d\n", r, r, r % 9, (r + 999) % 1000
    printf "nbcshim: rank %d: last calls on MPI_COMM_WORLD: 6 iallreduce of 1, 7 %s\n", r,
        r == 500 ? "ibarrier of 0" : "iallreduce of 1" } }' >"$scratch/thousand"
"$nbcrun" --hang="$scratch/thousand" >"$scratch/log"
expect "the reports of 1,000 ranks are at most 40 lines" test "$(wc -l <"$scratch/log")" -le 40
log_has 1 "the call that differs, and where" \
    '^MPI_COMM_WORLD: call 7 differs: ranks 0-499,501-999: iallreduce of 1; rank 500: ibarrier of 0$'
log_has 1 "the function of all, without the thousand places" '^ranks 0-999: in MPI_Wait$'
log_has 1 "what all wait for, without the thousand peers" \
    '^ranks 0-999: allreduce:ring, number 7 on MPI_COMM_WORLD \(of 1000\), round 3 of 5: waits for other ranks$'

# The last sixteen calls need not be the same ones. The name is one of C++.
awk 'BEGIN { for (r = 0; r < 4; r++) {
    n = r == 2 ? 40 : 60
    printf "nbcshim: rank %d: last calls on MPI_COMM_WORLD: %d iallreduce of 1 at _ZN3one5solveEi+7 (app)", r, n - 15
    for (i = n - 14; i <= n; i++) printf ", %d iallreduce of 1 at _ZN3one5solveEi+7 (app)", i
    printf "\nnbcshim: rank %d: in MPI_Recv\n", r } }' >"$scratch/behind"
"$nbcrun" --hang="$scratch/behind" >"$scratch/log"
log_has 1 "a rank that is far behind" \
    '^MPI_COMM_WORLD: the last calls .* do not differ .*root, ranks 0-1,3 have made 60 calls, rank 2 has made 40 calls;'
sed '/rank 1: last/d' "$scratch/behind" >"$scratch/silent"
"$nbcrun" --hang="$scratch/silent" >"$scratch/log"
log_has 1 "of a rank that does not say its calls nothing is said" ' ranks 0,3 have made 60 calls, rank 2 has made 40 calls;'
sed -i 's/40 iallreduce of 1/40 ibarrier/; s/: 45 iallreduce of 1/: 40 iallreduce of 1 at _ZN3one5solveEi+7 (app), 45 iallreduce of 1/' \
    "$scratch/behind"
"$nbcrun" --hang="$scratch/behind" >"$scratch/log"
! command -v c++filt >/dev/null ||
    log_has 1 "a function of C++" '^MPI_COMM_WORLD: call 40 differs: .*at one::solve\(int\)\+7 \(app\)'

# By NBCSHIM_TIMEOUT, and then by SIGUSR1.
for seconds in 2.0 7.5; do
    for rank in 0 1; do
        echo "nbcshim: rank $rank: barrier:linear, number 1 on MPI_COMM_WORLD (rank $rank of 3), pending for $seconds s: waits for a message from rank 2"
    done
done >"$scratch/twice"
"$nbcrun" --hang="$scratch/twice" >"$scratch/log"
log_has 1 "a rank that reports twice is named once" '^ranks 0-1: barrier:linear, number 1 on MPI_COMM_WORLD \(of 3\): waits'

echo 'nbcshim: inactive: no rank references a nonblocking or persistent collective; NBCSHIM=on activates it' >"$scratch/inactive"
"$nbcrun" --hang="$scratch/inactive" >"$scratch/log" 2>&1
expect "a file without a report is a failure" test $? = 1
log_has 1 "nbcshim was inactive" ": no report of nbcshim is in this file: it was inactive\$"

# MPI_Comm_set_name is local: one rank may have given no name, or another one.
{
    echo 'nbcshim: rank 0: last calls on communicator 65.0: 1 ibarrier of 0'
    echo 'nbcshim: rank 1: last calls on communicator 65.0 "rows: 1": 1 ibcast of 4 root 0'
} >"$scratch/named"
"$nbcrun" --hang="$scratch/named" >"$scratch/log"
log_has 1 "a communicator with a name" '^communicator 65\.0 "rows: 1": call 1 differs: rank 0: ibarrier of 0; rank 1: ibcast '

# On another host the ranks have what the launcher passes on, and nothing else. A stand-in for ssh makes
# such a host.
cat >"$scratch/ssh" <<'END'
#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
shift
exec env -i PATH="$PATH" HOME="$HOME" LD_LIBRARY_PATH="$LD_LIBRARY_PATH" sh -c "$*"
END
chmod +x "$scratch/ssh"
passes_on() # NAME FLAG...
{
    local name=$1
    shift
    guarded 60 "$scratch/log" env NBCSHIM_STATS=1 "NBCSHIM_TRACE=a b" "$nbcrun" --library="$other" \
        "$MPIEXEC" -launcher ssh -launcher-exec "$scratch/ssh" -hosts elsewhere -localhost 127.0.0.1 \
        "$@" -n 1 sh -c 'echo "there: $LD_PRELOAD $NBCSHIM_STATS $NBCSHIM_TRACE"'
    [ "$(grep '^there:' "$scratch/log")" = "there: $other 1 a b" ]
    result $? "$name" "$(cat "$scratch/log")"
}
# The Hydra of MPICH2 1.4 does not know the option.
if [ "$MPI_LAUNCHER" = mpich ] && "$MPIEXEC" -localhost 127.0.0.1 -n 1 true >"$scratch/log" 2>&1; then
    passes_on "the ranks of another host are preloaded, and have the variables"
    passes_on "with -genvnone, too" -genvnone
    passes_on "with -genvlist, too" -genvlist PATH
    passes_on "with -envnone, too" -envnone
fi

finish
