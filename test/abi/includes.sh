#!/usr/bin/env bash
# Who includes whom: src only src, and never <mpi.h>; pmpi also src and include; nothing else
# includes pmpi. And all files are listed.

. "$(dirname "$0")/../lib.sh"
cd "$srcdir" || exit 1

# The directory where a quoted include is found.
home() # name including-directory
{
    local directory
    for directory in "$2" src pmpi include test/mpi/common tools/nbcsim tools; do
        if [ -f "$directory/$1" ]; then
            echo "$directory"
            return
        fi
    done
    echo "?"
}

# check_directory DIRECTORY ALLOWED...: every quoted include of DIRECTORY lies in an ALLOWED one.
check_directory()
{
    local directory=$1 file name at status=0
    shift
    for file in "$directory"/*.[ch] "$directory"/*.def; do
        [ -f "$file" ] || continue
        for name in $(sed -n 's/^ *# *include *"\([^"]*\)".*/\1/p' "$file"); do
            [ "$name" = config.h ] && at=config.h || at=$(home "$name" "$directory")
            case " $* " in
            *" $at "*) ;;
            *)
                comment "$file includes $name of $at"
                status=1
                ;;
            esac
        done
    done
    result $status "$directory includes only from: $*"
}

check_directory src src
check_directory pmpi pmpi src include config.h
check_directory include include
check_directory test/unit test/unit src tools/nbcsim
check_directory tools/nbcsim tools/nbcsim tools src config.h
check_directory test/mpi test/mpi test/mpi/common include config.h
check_directory test/mpi/common test/mpi/common include src config.h

found=$(grep -nE '# *include *[<"]mpi\.h' src/*)
[ -z "$found" ]
result $? "src does not include mpi.h"
[ -z "$found" ] || comment "$found"

found=$(grep -nwE 'P?MPI_[A-Z][a-z]\w*\(' src/*.[ch] | grep -vE '^\S+\s*(/\*|\*|//)')
[ -z "$found" ]
result $? "src calls no MPI function"
[ -z "$found" ] || comment "$found"

# What is not listed is not in the distribution, and a program or source not listed is never built.
unlisted=
for file in src/* pmpi/* include/* test/unit/* test/mpi/*.[ch] test/mpi/common/* test/abi/* \
    test/mpi22/* test/tools/* tools/nbcsim/*; do
    case $file in
    test/mpi/*) name=$(basename "$file" | sed 's/\..*//') ;;
    test/unit/*.c) name=${file%.c} ;;
    *) name=$file ;;
    esac
    grep -qwF -- "$name" Makefile.am || unlisted="$unlisted $file"
done
[ -z "$unlisted" ]
result $? "every source file is listed in Makefile.am"
[ -z "$unlisted" ] || comment "not listed:$unlisted"

finish
