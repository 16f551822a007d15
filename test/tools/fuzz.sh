#!/usr/bin/env bash
# test/fuzz finds what fails and makes it small: fuzz --break=scan takes the second start of a
# persistent scan for wrong, which needs three lines of this program on one rank.

. "$(dirname "$0")/../lib.sh"

cat >"$scratch/program" <<'END'
# anything
dup id=1 wild=1 seed=1
init id=2 coll=allreduce most=12 seed=2
init id=3 on=1 coll=scan most=300 algorithm=chain seed=3
start of=2 of=3 seed=4
message on=1 bytes=30 shift=1 tag=5 seed=5
complete times=3 seed=6
start of=3 seed=7
drain seed=8
END

fuzz()
{
    srcdir=$srcdir "$srcdir/test/fuzz" "$@"
}

goes_well()
{
    fuzz --program="$scratch/program" --ranks=3
}

is_made_small()
{
    local text
    text=$(fuzz --shrink="$scratch/program" --ranks=2 --break=scan)
    echo "$text"
    grep -q '^# failure on 1 ranks; 3 lines are left' <<<"$text" &&
        grep -q '^init .*coll=scan most=1 ' <<<"$text" &&
        [ "$(grep -c '^start of=3 ' <<<"$text")" = 2 ] &&
        grep -q '^# .*this is what --break breaks' <<<"$text"
}

is_not_found()
{
    fuzz --seconds=1 --ranks=1 && ! fuzz --seconds=1 --ranks=1 --break=bcast --shrink=/dev/null |
        grep -q 'lines are left'
}

is_refused()
{
    echo 'init id=1 coll=nonsense' >"$scratch/nonsense"
    ! fuzz --program="$scratch/nonsense" --ranks=1
}

expect "a program that fuzz reads runs" goes_well
expect "a program that fails is made as small as it gets" is_made_small
expect "what does not fail stays as it is" is_not_found
expect "a program with an error in it is refused" is_refused

finish
