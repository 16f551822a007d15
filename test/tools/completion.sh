#!/usr/bin/env bash
# Completion: bash loads the files, they offer every option that --help names, and what fits an
# option; zsh's have the same options.

. "$(dirname "$0")/../lib.sh"
forget_settings
export LC_ALL=C

# offers LINE: what bash offers at the end of it.
offers()
(
    command=${1%% *}
    COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
    . "completion/$command"
    _nbcshim_$command
    printf '%s\n' "${COMPREPLY[@]}"
)

# offered NAME LINE WORD...: exactly these, in any order.
offered()
{
    local name=$1 line=$2
    shift 2
    offers "$line" 2>&1 | sort >"$scratch/offers"
    expect "$name" diff "$scratch/offers" <(printf '%s\n' "$@" | sort)
}

for command in nbcbench nbcinfo nbcrun nbcsim nbctune; do
    program=$(ls tools/$command tools/$command/$command bench/$command 2>/dev/null |
        while read -r file; do [ -d "$file" ] || echo "$file"; done | head -n 1)
    mpi_command 1 "" "" "$program" --help
    case $command in
    nbcbench | nbctune) guarded 60 "$scratch/log" "${launch[@]}" ;;
    *) "$program" --help >"$scratch/log" ;;
    esac
    sed -nE 's/^ +(-[a-z], +)?(--[a-z-]+).*/\2/p' "$scratch/log" | sort -u >"$scratch/options"
    expect "$command --help names options" test "$(wc -l <"$scratch/options")" -ge 4
    expect "bash loads the completion of $command" bash -e -c ". completion/$command
        complete -p $command | grep _nbcshim_$command"
    expect "which offers every option of --help" \
        diff "$scratch/options" <(offers "$command --" | sed 's/=$//' | sort -u)
    expect "so does that for zsh" diff "$scratch/options" \
        <(sed -nE "s/^ +'(--[a-z-]+).*/\1/p" "completion/_$command" | sort -u)
    expect "which is for $command" grep -qx "#compdef $command" "completion/_$command"
    ! command -v zsh >/dev/null || expect "zsh reads it" zsh -n "completion/_$command"
done
offered "an option in part" "nbcinfo --alg" --algorithms
offered "a collective" "nbcinfo --choose allr" allreduce
offered "after a blank too" "nbcinfo --json  --choose reduce_scatter_" reduce_scatter_block
offered "a collective behind =" "nbcinfo --choose=allr" allreduce
offered "an algorithm behind its colon" "nbcinfo --schedule bcast:two_t" two_tree
offered "collectives and algorithms of nbcsim" "nbcsim -n 8 allgatherv:ri" ring
offered "nothing for a number" "nbcinfo --ranks " ""
offered "nothing, that is files, for a file" "nbcsim --plot " ""
offered "measurements" "nbcbench -m ov" overlap
offered "kinds of launchers" "nbcrun --launcher=hy" hydra
offers "nbcrun mpiex" | grep -q mpiexec
result $? "commands for nbcrun"
finish
