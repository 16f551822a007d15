#!/usr/bin/env bash
# configure and the MPI's compiler wrapper: how flags are understood, which wrapper is taken, and what is said
# of one that does not work. The wrappers are stand-ins.

. "$(dirname "$0")/../lib.sh"
if [ "$SIMULATED" = yes ]; then
    echo "1..0 # SKIP there is one wrapper of SMPI"
    exit 0
fi
configure=$(cd "$srcdir" && pwd)/configure
mkdir -p "$scratch/environment/bin" "$scratch/build"

# stand_in FILE COMPILER FLAGS...: a wrapper that knows -show, and compiles by the other command.
stand_in()
{
    local file=$1 compiler=$2
    shift 2
    printf '%s ' cc "$@" >"$file.flags"
    cat >"$file" <<END
#!/bin/sh
case \$1 in
-show) exec cat '$file.flags' ;;
--showme*) exit 1 ;;
esac
exec $compiler "\$@"
END
    chmod +x "$file"
}

# The words of a command line so that only a shell can read them.
in_quotes()
{
    local word
    for word; do
        case $word in
        -[ID]*) echo "${word:0:2}\"${word:2}\"" ;;
        -L*) echo "-L '${word:2}'" ;;
        -Wl,*,*) echo "$word" ;;
        -Wl,*) echo "-Xlinker \"${word#-Wl,}\"" ;;
        *) echo "${word:0:-1}\\${word: -1}" ;;
        esac
    done
}

# What does not depend on the MPI is found out once.
run() # argument...
{
    [ ! -f "$scratch/build/cache" ] || sed -i '/^ac_cv_env_\|MPI/d' "$scratch/build/cache"
    (cd "$scratch/build" && env -u srcdir -u MPICC CONFIG_SHELL=/bin/sh \
        /bin/sh "$configure" --cache-file=cache --disable-static MPIEXEC="$MPIEXEC" MPIFC=no CC="$CC" "$@") 2>&1
}

# The flags that a tree of configure has, one a line.
flags_of() # tree
{
    (. "$1/test/settings" && printf '%s\n' $MPI_CPPFLAGS $MPI_LIBS | sort -u)
}

same_flags()
{
    run MPICC="$scratch/quotes" && diff <(flags_of "$scratch/build") <(flags_of .)
}
mapfile -t words < <(in_quotes $MPI_CPPFLAGS $MPI_LIBS)
stand_in "$scratch/quotes" "$MPICC" "${words[@]}"
expect "flags with quotes, with backslashes and apart from their options" same_flags

# --- wrappers that do not work --------------------------------------------------------------------

# says NAME WORDS ARGUMENT...: configure ends with these words.
says()
{
    local name=$1 words=$2 output
    shift 2
    ! output=$(run "$@") && [[ $output == *"error: $words"* ]]
    result $? "$name" "$(tail -n 5 <<<"$output")"
}

says "a wrapper that is not there" "there is no program $scratch/none/mpicc, which MPICC names" \
    MPICC="$scratch/none/mpicc"
stand_in "$scratch/blank" "$MPICC" '-I"/a b/include"' -lmpi
says "a blank in a directory" 'make cannot pass on the blank in "-I/a b/include", a flag of '"$scratch/blank" \
    MPICC="$scratch/blank"
stand_in "$scratch/wrong" "$MPICC" -DMPI_Init=MPI_Unit $MPI_CPPFLAGS $MPI_LIBS
says "flags that are wrong, of a wrapper that works" \
    "$scratch/wrong builds an MPI program, but $CC with its flags does not: " MPICC="$scratch/wrong"
printf '%s\n' 'echo "mpicc: error: no license" >&2' 'exit 1' >"$scratch/fails"
stand_in "$scratch/broken" "sh '$scratch/fails'"
says "a wrapper that cannot compile" "$scratch/broken cannot build an MPI program: mpicc: error: no license" \
    MPICC="$scratch/broken"

# --- the wrapper that is taken --------------------------------------------------------------------

# The words of a wrapper that cannot compile name it.
stand_in "$scratch/environment/bin/mpicc" "sh '$scratch/fails'"
stand_in "$scratch/mpicc.mpich" "sh '$scratch/fails'"
says "an environment's mpicc precedes the system's" "$scratch/environment/bin/mpicc cannot build" \
    PATH="$scratch/environment/bin:$scratch:$PATH"
says "the system's without such an environment" "$scratch/mpicc.mpich cannot build" \
    PATH="$scratch:$scratch/environment/bin:$PATH"
finish
