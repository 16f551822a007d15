#!/usr/bin/env bash
# NBCSHIM_TUNING: a file's rules decide, before the built-in ones; a bad file is told of and not used.

. "$(dirname "$0")/../lib.sh"
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

# run FILE COMMAND...: the collectives test passes; what it says is in $scratch/log.
run()
{
    local status file=$1
    shift
    mpi_command 3 "$(sanitizer_runtime) $library" "NBCSHIM_STATS=1 NBCSHIM_TUNING=$file" "$@"
    guarded 120 "$scratch/log" "${launch[@]}"
    status=$?
    result $status "$(basename "$file"): right results"
    [ $status = 0 ] || comment "$(head -c 20000 "$scratch/log")"
}

# told NAME NUMBER PATTERN: so many lines of the log match.
told()
{
    local found
    found=$(grep -cE "$3" "$scratch/log")
    [ "$found" = "$2" ]
    result $? "$1"
    [ "$found" = "$2" ] || comment "$found lines: $(grep '^nbcshim:' "$scratch/log")"
}

program=$PWD/test/mpi/collectives.preload

cat >"$scratch/good" <<'END'
# rules for three ranks and for others
barrier    4-   *      dissemination4
barrier    3    *      tree
allreduce  1-3  0-1G   ring           64
alltoall   *    *      pairwise
END
run "$scratch/good" "$program"
told "a rule for this number of ranks" 1 '^nbcshim: barrier +tree '
told "a rule for these bytes" 1 '^nbcshim: allreduce +ring '
told "where its algorithm does not apply, another" 1 '^nbcshim: allreduce +(recursive_doubling|two_rounds) '
told "a rule for all" 1 '^nbcshim: alltoall +pairwise '
told "no complaint" 0 'NBCSHIM_TUNING'

printf 'barrier * * tree\n\nbarrier * * fir\n' >"$scratch/bad"
run "$scratch/bad" "$program"
told "the bad line" 1 '^nbcshim: NBCSHIM_TUNING=.*/bad ignored: line 3: barrier has no algorithm fir$'
told "one complaint" 1 'NBCSHIM_TUNING'
told "none of its rules" 0 '^nbcshim: barrier +tree '

run "$scratch/missing" "$program"
told "no file" 1 '^nbcshim: NBCSHIM_TUNING=.*/missing ignored: No such file or directory$'
run "$scratch" "$program"
told "no text" 1 '^nbcshim: NBCSHIM_TUNING=.* ignored: Is a directory$'
: >"$scratch/empty"
run "$scratch/empty" "$program"
told "no rules, no complaint" 0 'NBCSHIM_TUNING'

# On rank 1 another file.
cat >"$scratch/differ" <<END
#!/bin/sh
case \${PMI_RANK:-\$OMPI_COMM_WORLD_RANK} in
1) NBCSHIM_TUNING=$scratch/empty ;;
esac
export NBCSHIM_TUNING
exec $program
END
chmod +x "$scratch/differ"
run "$scratch/good" "$scratch/differ"
told "different rules" 1 '^nbcshim: NBCSHIM_TUNING=.* ignored: the ranks have read different rules$'
told "the built-in ones on all" 0 '^nbcshim: barrier +tree '

# NBCSHIM_CHECK knows them: rank 1 is told the algorithm that the rules give the others, or another.
# checked ALGORITHM: its status is that of the run.
checked()
{
    printf '#!/bin/sh\ncase ${PMI_RANK:-$OMPI_COMM_WORLD_RANK} in\n' >"$scratch/told"
    printf '1) export NBCSHIM_ALGORITHM_BARRIER=%s ;;\nesac\nexec %s\n' "$1" "$scratch/barrier" \
        >>"$scratch/told"
    chmod +x "$scratch/told"
    mpi_command 3 "$(sanitizer_runtime) $library" "NBCSHIM_CHECK=1 NBCSHIM_TUNING=$scratch/good" \
        "$scratch/told"
    guarded 60 "$scratch/log" "${launch[@]}"
}

cat >"$scratch/barrier.c" <<'END'
#include <mpi.h>
int main(int argc, char **argv)
{
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
END
expect "a program with a barrier compiles" $CC $MPI_CPPFLAGS "$scratch/barrier.c" \
    -o "$scratch/barrier" $MPI_LIBS
checked tree
result $? "NBCSHIM_CHECK: the same algorithm by a rule and by a variable"
told "no complaint of the check" 0 'ranks disagree'
checked dissemination
status=$?
[ $status != 0 ] && [ $status != 124 ]
result $? "NBCSHIM_CHECK: another algorithm than by the rule ends the program (status $status)"
grep -qE 'MPI_Ibarrier: rank . uses algorithm (tree|dissemination), rank . uses' "$scratch/log"
result $? "which says so"

finish
