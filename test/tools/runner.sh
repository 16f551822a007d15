#!/usr/bin/env bash
# test/mpi/run.sh itself, on a list, programs and a launcher made here: what fails, hangs, is not
# listed or is not there is reported, each case with its own output, in the order of the list.

. "$(dirname "$0")/../lib.sh"

tree=$scratch/tree
build=$scratch/build
mkdir -p "$tree/test/mpi" "$tree/src" "$build/test/mpi/.libs"
source=$(cd "$srcdir" && pwd)
ln -s "$source/test/lib.sh" "$tree/test/lib.sh"
ln -s "$source/test/mpi/run.sh" "$tree/test/mpi/run.sh"
printf 'ALG(BCAST, one, 0, x, "")\nALG(BCAST, two, 0, x, "")\nALG(SCAN, only, 0, x, "")\n' \
    >"$tree/src/algs.def"

# The launcher runs the program once, with its number of ranks; it knows Hydra's options.
cat >"$build/launcher" <<'END2'
#!/bin/bash
while [ "$1" != -n ]; do
    shift $([ "$1" = -genv ] && echo 3 || echo 1)
done
RANKS=$2 exec "${@:3}"
END2
chmod +x "$build/launcher"
cat >"$build/test/settings" <<END2
MPI_FLAVOR=mpich
MPI_LAUNCHER=mpich
NBC_HOOK=no
MPIEXEC=$build/launcher
SANITIZE=no
SIMULATED=no
END2

# program NAME TEXT: a test program, in both modes.
program()
{
    local mode
    echo 'int main(void)' >"$tree/test/mpi/$1.c"
    for mode in preload link; do
        printf '#!/bin/bash\n%s\n' "$2" >"$build/test/mpi/$1.$mode"
        chmod +x "$build/test/mpi/$1.$mode"
    done
}

program good 'echo "good ran"; sleep 0.$RANKS'
program bad 'echo "bad says why on $RANKS"; sleep 0.2; exit 3'
program late 'sleep 60'
program algs 'echo "ran $*" >>$LOG'
echo 'int main(void) { for (;;) ; }' >"$scratch/stuck.c"
$CC -g -O0 -o "$build/test/mpi/stuck.preload" "$scratch/stuck.c" || result 1 "a program compiles"

# runs NAME STATUS LINE... : run.sh ends with that status on a list of these lines; all it says is in
# $scratch/said.
runs()
{
    local name=$1 wanted=$2 status
    shift 2
    printf '%s\n' "$@" "${smpi[@]}" >"$tree/test/mpi/tests.list"
    (cd "$build" && unset srcdir NBC_TESTS NBC_SKIP NBC_FAST NBC_SOAK NBC_UNDER NBC_LIBRARY &&
        NBC_SOAK=$soak NBC_PLACES=2 LOG=$scratch/ran "$tree/test/mpi/run.sh" $option) >"$scratch/said" 2>&1
    status=$?
    [ $status = "$wanted" ]
    result $? "$name: exit status $wanted" "status $status: $(cat "$scratch/said")"
}

# says NAME TEXT: its results, without the times, are TEXT.
says()
{
    grep -vE '^# [0-9.]+ s, |^# [0-9]+ passed|^# status' "$scratch/said" | diff - <(echo "$2") >"$scratch/diff"
    result $? "$1" "$(cat "$scratch/diff")"
}

option= soak=
smpi=("not-smpi good: why" "not-smpi bad late algs: why")
all='good 3 2 1 mode=preload'
rest=$'bad 1 mode=preload\nalgs 1 mode=preload\nlate 1 soak'
runs "all pass" 0 "$all" 'good 1 1 mode=link' 'algs 1 mode=preload' $'bad 1 soak\nlate 1 soak'
says "the order is that of the list" "ok 1 - good, 3 ranks, preload
ok 2 - good, 2 ranks, preload
ok 3 - good, 1 ranks, preload
ok 4 - good, 1 ranks, link
ok 5 - good, 1 ranks, link
ok 6 - algs, 1 ranks, preload
1..6"

runs "one fails among others that run beside it" 1 'good 1 1 mode=preload' 'bad 1 2 mode=preload' \
    'good 1 mode=preload' $'algs 1 soak\nlate 1 soak'
says "each case has its own output" "ok 1 - good, 1 ranks, preload
ok 2 - good, 1 ranks, preload
not ok 3 - bad, 1 ranks, preload
# bad says why on 1
not ok 4 - bad, 2 ranks, preload
# bad says why on 2
ok 5 - good, 1 ranks, preload
1..5"
expect "each case has its time" test "$(grep -cE '^# [0-9.]+ s, [0-9.]+ \+ [0-9.]+ s of processors: (good|bad), [12] ranks, preload$' "$scratch/said")" = 5

runs "a program that is not there" 1 'good 1' "$rest" 'nothing 1 mode=preload'
expect "it is reported" grep -q '^not ok [0-9]* - nothing, 1 ranks, preload$' "$scratch/said"
runs "a program without a line" 1 'good 1 mode=preload' 'bad 1 soak' 'algs 1 soak'
says "it is reported" "not ok 1 - tests.list has a line for late
ok 2 - good, 1 ranks, preload
1..2"
said_of_smpi=("${smpi[@]}")
smpi=("${smpi[@]:1}")
runs "a program that may run on SMPI or not" 1 'good 1 mode=preload' 'bad 1 soak' 'algs 1 soak' 'late 1 soak'
expect "it is reported" grep -q '^not ok 1 - tests.list says whether good runs on SMPI, or why not$' "$scratch/said"
smpi=("${said_of_smpi[@]}")
runs "a word that is unknown" 1 'good 1 mode=preload' 'good 1 rank=2' "$rest"
expect "it is reported" grep -q "^not ok 1 - tests.list: good: what is 'rank=2'?$" "$scratch/said"
runs "a fast case that is none" 1 'good 1 mode=preload fast=link:1' "$rest"
expect "it is reported" grep -q "^not ok 1 - tests.list: good: there is no case 'link:1'$" "$scratch/said"

runs "a hang" 1 'late 1 mode=preload timeout=0.2' 'good 1 mode=preload' $'bad 1 soak\nalgs 1 soak'
says "it is ended, and the others run" "not ok 1 - late, 1 ranks, preload
# still running after 0.2 seconds
ok 2 - good, 1 ranks, preload
1..2"
if command -v gdb >/dev/null; then
    runs "a hang in a program" 1 'stuck 2 mode=preload timeout=0.2' 'good 1 mode=preload' "$rest"
    expect "its stacks are shown" grep -qE '^# #0 .*\bmain\b' "$scratch/said"
fi
runs "five hangs" 1 'good 1 mode=preload' 'late 1 1 1 1 1 1 1 1 1 1 mode=preload timeout=0.2' \
    'good 2 mode=preload' $'bad 1 soak\nalgs 1 soak'
expect "the rest is not run" grep -qx 'Bail out! five cases hung, the rest is not run' "$scratch/said"
expect "which hung is reported" test "$(grep -c '^not ok .* - late' "$scratch/said")" -ge 5
expect "few more than five" test "$(grep -c '^not ok .* - late' "$scratch/said")" -lt 7
! grep -q 'good, 2 ranks' "$scratch/said"
result $? "nor are those after it"

rm -f "$scratch/ran"
runs "algorithms" 0 'algs 1 algorithms mode=preload' 'algs 1 algorithms=each mode=preload' 'good 1' \
    $'bad 1 soak\nlate 1 soak'
sort "$scratch/ran" >"$scratch/sorted"
expect "algorithms=each names those that have so many" \
    diff "$scratch/sorted" <(printf 'ran \nran \nran bcast\nran bcast scan\n' | sort)

option=--list
runs "--list" 0 "$all"
says "it prints names" "good, 3 ranks, preload
good, 2 ranks, preload
good, 1 ranks, preload"
runs "--list of three modes" 0 'good 1 3 5 mode=all' 'good 5 mode=link'
says "linked programs run on 2 or 3 ranks, if these are listed" "good, 1 ranks, preload
good, 3 ranks, preload
good, 5 ranks, preload
good, 3 ranks, link
good, 3 ranks, static
good, 5 ranks, link"
runs "--list of 2 and 3 ranks, and of what runs once" 0 'good 3 2' 'good 1 mode=link once'
says "linked programs run on 2 ranks rather than 3" "good, 3 ranks, preload
good, 2 ranks, preload
good, 2 ranks, link
good, 1 ranks, link"
NBC_AGAIN=1 runs "--list on another MPI" 0 'good 3 2' 'good 1 mode=link once'
says "not what runs once" "good, 3 ranks, preload
good, 2 ranks, preload
good, 2 ranks, link"
soak=1 runs "--list in the soak" 0 'good 1 3 mode=both'
says "they run on all" "good, 1 ranks, preload
good, 3 ranks, preload
good, 1 ranks, link
good, 3 ranks, link"
option=--programs
runs "--programs" 0 'good 1 2' 'bad 1 mode=link'
says "it prints programs" "test/mpi/bad.link
test/mpi/good.link
test/mpi/good.preload"
option=--nonsense
runs "an unknown option" 2 "$all"

finish
