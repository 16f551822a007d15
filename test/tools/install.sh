#!/usr/bin/env bash
# make install: what lies where, the installed library and programs work, and every command of README
# runs; make uninstall takes all away. Documents: man pages have no mistakes, links lead somewhere.

. "$(dirname "$0")/../lib.sh"
forget_settings
prefix=$scratch/prefix
source=$(cd "$srcdir" && pwd) || exit 1

# --- documents ------------------------------------------------------------------------------------

if command -v mandoc >/dev/null; then
    for page in "$srcdir"/doc/*.[1-8]; do
        # Pages of the MPI, and those of another section, need not be there.
        output=$(mandoc -T lint -W warning "$page" 2>&1)
        [ -z "$output" ]
        result $? "$(basename "$page") has no mistakes" "$output"
    done
else
    echo "ok $((cases += 1)) - man pages # SKIP no mandoc"
fi
for page in "$srcdir"/doc/*.1; do
    for section in OPTIONS "EXIT STATUS"; do
        grep -qx "\.Sh $section" "$page"
        result $? "$(basename "$page") has $section"
    done
done

# The completions have the options of --help.
missing=
for file in completion/nbc*; do
    command=${file#*/}
    for option in $(grep -oE -- '--[a-z][a-z-]+' "$file" | sort -u); do
        grep -qE -- "^\.(It|Op) .*Fl ${option#-}( |$)" "$srcdir/doc/$command.1" || missing="$missing $command:$option"
    done
done
[ -z "$missing" ]
result $? "manual pages have every option" "missing:$missing"

dead=
for page in "$srcdir"/doc/*.md; do
    for link in $(grep -o '](\([^)#:]*\)' "$page" | sed 's/](//'); do
        case $link in
        http*) ;;
        *) [ -e "$srcdir/doc/$link" ] || dead="$dead $(basename "$page"):$link" ;;
        esac
    done
done
for file in $(grep -oE '\b(doc|examples|test|src|include)/[a-z0-9_/.]+\.(md|c|h|sh|in)\b' "$srcdir/README"); do
    [ -e "$srcdir/$file" ] || dead="$dead README:$file"
done
[ -z "$dead" ]
result $? "links of documents lead somewhere" "dead:$dead"

# --- installing -----------------------------------------------------------------------------------

# With the directories given to make: libtool links again for them, and the test needs no configure.
directories="prefix=$prefix exec_prefix=$prefix libdir=$prefix/lib"
unset MAKEFLAGS MFLAGS MAKELEVEL
expect "make install" ${MAKE:-make} install $directories
for file in bin/nbcrun bin/nbcinfo bin/nbcbench include/nbcshim.h lib/lib$NBC_NAME.so.0 lib/lib$NBC_NAME.a lib/libnbcprofile.so libexec/nbcshim/nbccompare \
    bin/nbcc bin/nbccxx bin/nbcfort share/man/man1/nbcc.1 share/man/man1/nbccxx.1 \
    share/man/man1/nbcfort.1 lib/cmake/nbcshim/nbcshim-config.cmake \
    lib/cmake/nbcshim/nbcshim-config-version.cmake share/bash-completion/completions/nbcinfo \
    share/zsh/site-functions/_nbcinfo lib/pkgconfig/nbcshim.pc lib/modulefiles/nbcshim share/man/man1/nbcrun.1 share/man/man1/nbcinfo.1 \
    share/man/man1/nbcbench.1 share/man/man7/nbcshim.7; do
    expect "$file is installed" test -e "$prefix/$file"
done
[ "$(objdump -p "$prefix/lib/lib$NBC_NAME.so" | awk '$1 == "SONAME" { print $2 }')" = lib$NBC_NAME.so.0 ]
result $? "the SONAME is lib$NBC_NAME.so.0"
! grep -n '@' "$prefix/lib/modulefiles/nbcshim" "$prefix"/lib/cmake/nbcshim/*
result $? "the module file and the files of CMake have their directories"

# --- the commands of README -----------------------------------------------------------------------

# Stand-ins under the names that README uses: the MPI of this tree, with what a test run needs.
mkdir "$scratch/bin" "$scratch/work"
mpi_command 2 "" "" true
cat >"$scratch/bin/mpiexec" <<END
#!/bin/sh
[ "\$1" != --version ] || exec ${launch[0]} --version
exec ${launch[@]:0:${#launch[@]}-3} "\$@"
END
printf '#!/bin/sh\nexec %s "$@"\n' "$MPICC" >"$scratch/bin/mpicc"
# nbcshim.pc names the prefix of configure.
printf '#!/bin/sh\nexec %s --define-variable=prefix=%s "$@"\n' "$(command -v pkg-config)" "$prefix" \
    >"$scratch/bin/pkg-config"
chmod +x "$scratch"/bin/*
cp "$srcdir/test/tools/app.c" "$scratch/work"
# And a program that also runs without nbcshim.
cat >"$scratch/work/solver.c" <<'END'
#include <mpi.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
#if MPI_VERSION < 3
    MPI_Barrier(MPI_COMM_WORLD);
#else
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
#endif
    return MPI_Finalize();
}
END
# mpiexec says 0 of a program that its sanitizer does not let start.
allow_late_sanitizer
export PATH=$scratch/bin:$prefix/bin:$PATH
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib

# Lines that are commands: indented, with an explanation behind two blanks or more at most.
commands()
{
    sed -nE 's/^ {4,}//; s/ {2,}.*//
        /^([A-Z_]+=[^ ]+ )*(nbcrun|nbcc|nbcinfo|nbcbench|mpicc|mpiexec|make|man|\.\/configure|\.\/quickstart)( |$)/p' \
        "$srcdir/README" | sort -u
}

run_command()
{
    case $1 in
    ./quickstart) bash -n "$srcdir/quickstart" ;;
    ./quickstart\ *) grep -q "^${1#* })" "$srcdir/quickstart" ;;
    ./configure*)
        [ "$MPI_FLAVOR" = openmpi ] || return 0 # the command is for Open MPI: once is enough
        command -v mpicc.openmpi >/dev/null || return 0
        (mkdir -p "$scratch/configure" && cd "$scratch/configure" &&
            "$source"/configure -q --no-create --enable-option-checking=fatal ${1#* })
        ;;
    make\ install) ;; # done above
    *nbcbench\ *--samples\ 3) run_command "${1% *} 1" ;; # each collective, once
    *nbctune\ --loggp) run_command "${1%--*}--version" ;; # measure.sh has the measurement, which takes seconds
    *nbcrun\ --compare\ [!-]*) run_command "${1/--compare/--compare --runs=1}" ;;
    man\ *)
        for page in $(echo "${1#man }" | tr , ' '); do
            ls "$prefix"/share/man/man?/"$page".? || return 1
        done
        ;;
    *) (cd "$scratch/work" && guarded 60 "$scratch/log" bash -c "$1") ;;
    esac
}

expect "a program is linked with the installed library" bash -c \
    "cd '$scratch/work' && mpicc app.c -o app \$(pkg-config --cflags --libs nbcshim)"
expect "a program without nbcshim compiles" bash -c "cd '$scratch/work' && mpicc solver.c -o solver"
mpi_command 2 "$(sanitizer_runtime)" "" "$scratch/work/app"
expect "it runs without LD_LIBRARY_PATH" guarded 60 "$scratch/log" env -u LD_LIBRARY_PATH "${launch[@]}"
count=0
while read -r line <&3; do
    count=$((count + 1))
    run_command "$line" >"$scratch/output" 2>&1
    result $? "README: $line" "$(cat "$scratch/output" "$scratch/log" 2>/dev/null)"
done 3< <(commands)
expect "README has commands: $count" test $count -ge 15
expect "the trace that README speaks of has been written" test -s "$scratch/work/trace.json"

# --- uninstalling ---------------------------------------------------------------------------------

# left NAME DIRECTORY: nothing is in it, and no empty directory.
left()
{
    local files
    files=$(find "$2" -mindepth 1 2>/dev/null)
    [ -z "$files" ]
    result $? "$1" "$files"
}

expect "make uninstall" ${MAKE:-make} uninstall $directories
expect "make distcheck finds the prefix" test -d "$prefix"
left "make uninstall leaves nothing, not even a directory" "$prefix"

# Two side by side, as --enable-side-by-side configures them; here both are of this MPI.
side=$scratch/side
beside() # make's target, name
{
    ${MAKE:-make} "$1" prefix="$side" exec_prefix="$side" libdir="$side/lib/nbcshim/$2" \
        program_transform_name="s/^\\(nbcbench\\|nbcc\\|nbccxx\\|nbcfort\\|nbcinfo\\|nbcsim\\|nbctune\\)\$\$/&.$2/"
}
expect "one MPI's installation" beside install one
find "$side" ! -type d | sort >"$scratch/alone"
expect "another's beside it" beside install another
expect "that is uninstalled" beside uninstall another
find "$side" ! -type d | sort | diff "$scratch/alone" - >"$scratch/output"
result $? "all of the first is there still, and nothing of the other" "$(cat "$scratch/output")"
expect "of the other no empty directory" test ! -e "$side/lib/nbcshim/another"
expect "nbcrun of the first works" bash -c "'$side/bin/nbcrun' --print '$scratch/work/app' | grep -q nbcshim/one/"
expect "it is uninstalled too" beside uninstall one
left "after the last nothing is left" "$side"

finish
