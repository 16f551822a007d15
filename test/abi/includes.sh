#!/usr/bin/env bash
# Who includes whom: src only src and config.h, and never <mpi.h>; a directory of pmpi itself, those before it, src
# and include; nothing else includes pmpi. The objects of pmpi refer to each other without a circle.
# And all files are listed.

. "$(dirname "$0")/../lib.sh"
built=$PWD
cd "$srcdir" || exit 1

# Prints the quoted includes of the files in a directory: the file, and what it includes. (Processes and
# subshells for each file and include would take most of the time of this test.)
includes_of() # directory
{
    grep -HE '^ *# *include *"' "$1"/*.[ch] "$1"/*.def 2>/dev/null |
        sed 's/^\([^:]*\):[^"]*"\([^"]*\)".*/\1 \2/'
}

# Sets at to the directory where a quoted include is found.
find_home() # name including-directory
{
    for at in "$2" src include test/mpi/common tools/nbcsim tools/compare tools; do
        [ -f "$at/$1" ] && return
    done
    at="?"
}

# check_directory DIRECTORY ALLOWED...: every quoted include of DIRECTORY lies in an ALLOWED one.
check_directory()
{
    local directory=$1 file name at status=0
    shift
    while read -r file name; do
        [ "$name" = config.h ] && at=config.h || find_home "$name" "$directory"
        case " $* " in
        *" $at "*) ;;
        *)
            comment "$file includes $name of $at"
            status=1
            ;;
        esac
    done < <(includes_of "$directory")
    result $status "$directory includes only from: $*"
}

# The directories of pmpi, in their order: doc/developers.md says what is in each.
directories="below base op comm request engine hookless diag api profile"

# check_layer DIRECTORY BEFORE: what it includes names its directory, and lies in this one or one of BEFORE.
check_layer()
{
    local file name status=0
    while read -r file name; do
        case " $1 $2 " in
        *" ${name%/*} "*) [ -f "pmpi/$name" ] && continue ;;
        esac
        [ "$name" = config.h ] && continue
        [ "$name" = fingerprint.h ] && continue # made in the build tree
        [ "$name" = "${name##*/}" ] && { [ -f "src/$name" ] || [ -f "include/$name" ]; } && continue
        comment "$file includes $name"
        status=1
    done < <(includes_of "pmpi/$1")
    result $status "pmpi/$1 includes only from:$2 $1, src, include"
}

before=
for directory in $directories; do
    check_layer $directory "$before"
    before="$before $directory"
done
found=$(find pmpi -mindepth 2 -type f | grep -vE "^pmpi/(${directories// /|})/[^/]*$"; ls -d pmpi/*.[chd]* 2>/dev/null)
[ -z "$found" ]
result $? "every file of pmpi is in a directory of the order" "$found"

check_directory src src config.h
check_directory include include
check_directory test/unit test/unit src tools tools/nbcsim config.h
check_directory tools/nbcsim tools/nbcsim tools src config.h
check_directory tools/compare tools/compare tools src
check_directory test/mpi test/mpi test/mpi/common include config.h
check_directory test/mpi/common test/mpi/common include src config.h

found=$(grep -nE '# *include *[<"]mpi\.h' src/*)
[ -z "$found" ]
result $? "src does not include mpi.h" "$found"

found=$(grep -nwE 'P?MPI_[A-Z][a-z]\w*\(' src/*.[ch] | grep -vE '^\S+\s*(/\*|\*|//)')
[ -z "$found" ]
result $? "src calls no MPI function" "$found"

# The names that objects of pmpi define (T) and need (U), with the object.
symbols()
{
    local object
    for object in "$built"/pmpi/*/.libs/*.o; do
        nm "$object" | awk -v object="${object##*/libnbcshim_la-}" '
            $NF !~ /^nbc/ { next }
            NF == 2 && $1 == "U" { print "U", $2, object }
            NF == 3 && $2 ~ /[A-TV-Z]/ { print "T", $3, object }'
    done
}

# tsort says which objects refer to each other in a circle.
symbols | sort >"$scratch/symbols"
awk '$1 == "T" { home[$2] = $3 } $1 == "U" && home[$2] && home[$2] != $3 { print $3, home[$2] }' \
    "$scratch/symbols" | sort -u >"$scratch/arrows"
expect "the objects of pmpi refer to each other" test "$(wc -l <"$scratch/arrows")" -gt 100
found=$(tsort "$scratch/arrows" 2>&1 >/dev/null)
[ -z "$found" ]
result $? "they do so without a circle" "$found"

# What is not listed is not in the distribution, and a program or source not listed is never built.
unlisted= listed=$(cat Makefile.am ./*/local.mk test/*/local.mk)
for file in src/* pmpi/*/* include/* test/unit/* test/mpi/*.[ch] test/mpi/common/* test/abi/* \
    test/mpi22/* test/tools/* tools/nbcsim/* tools/compare/*; do
    case $file in
    test/mpi/*) name=${file##*/} name=${name%%.*} ;;
    test/unit/*.c) name=${file%.c} ;;
    *) name=$file ;;
    esac
    [[ $listed =~ (^|[^a-zA-Z0-9_])"$name"($|[^a-zA-Z0-9_]) ]] || unlisted="$unlisted $file"
done
[ -z "$unlisted" ]
result $? "every source file is listed in the local.mk of its folder" "not listed:$unlisted"

# A reason in a source stands at a line that it concerns, and what test/mutate names exists.
cd "$built" || exit 1
expect "each reason of a line that no test runs has its line" perl "$srcdir/test/uncovered" --check
look_for_mutants()
{
    perl "$srcdir/test/mutate" --list >/dev/null
}
expect "each reason of a mutant has its line, and each name its file" look_for_mutants

finish
