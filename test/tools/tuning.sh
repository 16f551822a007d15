#!/usr/bin/env bash
# NBCSHIM_TUNING: a file's rules decide, before the built-in ones; a bad file is told of and not used.

. "$(dirname "$0")/../lib.sh"

# run FILE COMMAND...: the collectives test passes, with $setting.
setting=
run()
{
    local file=$1
    shift
    mpi_command 3 "$(sanitizer_runtime) $library" "NBCSHIM_STATS=1 NBCSHIM_TUNING=$file $setting" "$@"
    ends_well "$(basename "$file"): right results" 120
}

# Of the collectives those that the rules here are about.
colls="barrier bcast allreduce alltoall"
program="env NBC_FEW=1 $PWD/test/mpi/collectives.preload $colls"

cat >"$scratch/good" <<'END'
# rules for three ranks and for others
barrier    4-   *      dissemination4
barrier    3    *      one_round
allreduce  1-3  0-1G   ring           64
alltoall   *    *      pairwise
END
run "$scratch/good" "$PWD/test/mpi/collectives.preload" $colls
log_has 1 "a rule for this number of ranks" '^nbcshim: barrier +one_round '
log_has 1 "a rule for these bytes" '^nbcshim: allreduce +ring '
log_has 1 "where its algorithm does not apply, another" '^nbcshim: allreduce +(recursive_doubling|two_rounds) '
log_has 1 "a rule for all" '^nbcshim: alltoall +pairwise '
log_has 0 "no complaint" 'NBCSHIM_TUNING'

echo 'barrier * * tree' >"$scratch/former"
run "$scratch/former" $program
log_has 1 "a former name of an algorithm" '^nbcshim: barrier +linear '
log_has 0 "no complaint of former names" 'NBCSHIM_TUNING'

printf 'barrier * * one_round\n\nbarrier * * fir\n' >"$scratch/bad"
run "$scratch/bad" $program
log_has 1 "the bad line" '^nbcshim: NBCSHIM_TUNING=.*/bad ignored: line 3: barrier has no algorithm fir$'
log_has 1 "one complaint" 'NBCSHIM_TUNING'
log_has 0 "none of its rules" '^nbcshim: barrier +one_round '

run "$scratch/missing" $program
log_has 1 "no file" '^nbcshim: NBCSHIM_TUNING=.*/missing ignored: No such file or directory$'
run "$scratch" $program
log_has 1 "no text" '^nbcshim: NBCSHIM_TUNING=.* ignored: Is a directory$'
: >"$scratch/empty"
run "$scratch/empty" $program
log_has 0 "no rules, no complaint" 'NBCSHIM_TUNING'

# Ranks on one node, as here, and ranks that are said to be on two; MPI_COMM_SELF is on one.
cat >"$scratch/places" <<'END'
barrier    *    *      one_round       local
barrier    *    *      dissemination4  spread
bcast      2-   *      chain           local
bcast      2-   *      linear          spread
END
run "$scratch/places" $program
log_has 1 "ranks on one node" '^nbcshim: bcast +chain '
log_has 0 "no others" '^nbcshim: (bcast +linear|barrier +dissemination4) '
setting=NBCSHIM_TEST=nodes=2 run "$scratch/places" $program
log_has 1 "ranks on two nodes" '^nbcshim: bcast +linear '
log_has 1 "parts of them on one" '^nbcshim: barrier +one_round '
setting=NBCSHIM_TEST=nodes=1 run "$scratch/places" $program
log_has 1 "each on its own" '^nbcshim: barrier +dissemination4 '
log_has 0 "not together" '^nbcshim: bcast +chain '

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
log_has 1 "different rules" '^nbcshim: NBCSHIM_TUNING differs: .* all ranks ignore it, since they have read different rules$'
log_has 0 "the built-in ones on all" '^nbcshim: barrier +one_round '

# NBCSHIM_CHECK knows them: a hint gives rank 1 the algorithm that the rules give the others, or another.
# checked ALGORITHM: its status is that of the run.
checked()
{
    mpi_command 3 "$(sanitizer_runtime) $library" "NBCSHIM_CHECK=1 NBCSHIM_TUNING=$scratch/good" \
        "$scratch/barrier" hint "$1"
    guarded 60 "$scratch/log" "${launch[@]}"
}

compiled barrier
checked one_round
result $? "NBCSHIM_CHECK: the same algorithm by a rule and by a hint"
log_has 0 "no complaint of the check" 'ranks disagree'
if mpi_has Comm_set_info; then
checked dissemination
status=$?
[ $status != 0 ] && [ $status != 124 ]
result $? "NBCSHIM_CHECK: another algorithm than by the rule ends the program (status $status)"
# One rank tells; another may have ended the program before it comes to that, with the same text.
grep -qE 'MPI_Ibarrier: rank . uses algorithm (one_round|dissemination), rank . uses' "$scratch/log"
result $? "which says so"
fi

finish
