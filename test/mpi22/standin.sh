#!/usr/bin/env bash
# An MPI that has MPI-2.2 and nothing more, made of the installed MPICH:
#
#     standin.sh DIRECTORY [MPICC]
#
# makes DIRECTORY/bin/mpicc22 and mpiexec22, to be given to configure: MPICC=DIRECTORY/bin/mpicc22.
# Its library has the functions of test/abi/mpi22.txt, each of which calls MPICH's; its mpi.h has
# neither const nor anything newer.

set -eu
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
directory=$1
mpicc=${2:-mpicc.mpich}
mkdir -p "$directory"/{bin,include,lib}
directory=$(cd "$directory" && pwd)

library=$directory/lib/libmpi22.so
printf '#include <mpi.h>\nint main(void) { return MPI_Init(0, 0); }\n' >"$directory/program.c"
"$mpicc" -o "$directory/program" "$directory/program.c"
real=$(ldd "$directory/program" | awk '$1 ~ /^libmpich\.so/ { print $3 }')
[ -n "$real" ] || {
    echo "standin.sh: $mpicc does not link with a shared MPICH" >&2
    exit 1
}

"$mpicc" -DMPICH_SKIP_MPICXX -E -dD "$directory/program.c" |
    perl "$here/cut.pl" "$here/../abi/mpi22.txt" "$directory/new.h" "$directory/new.c" "$real"

# What is as it was keeps its time: a tree that was built for it is not compiled again.
renew() # file new-file
{
    if cmp -s "$1" "$2"; then
        rm "$2"
    else
        mv "$2" "$1"
    fi
}
renew "$directory/include/mpi.h" "$directory/new.h"
renew "$directory/mpi22.c" "$directory/new.c"
cc=$("$mpicc" -show | sed 's/ .*//')
[ "$library" -nt "$directory/mpi22.c" ] || $cc -O1 -fPIC -shared -I"$directory/include" -Wno-deprecated-declarations \
    -Wl,-soname,libmpi22.so -o "$library" "$directory/mpi22.c" -ldl

cat >"$directory/bin/mpicc22" <<END
#!/bin/sh
# The flags alone with -show; link flags only where something is linked.
include='-I$directory/include'
link='-L$directory/lib -Wl,-rpath,$directory/lib -lmpi22'
for word; do
    case \$word in
    -show) exec echo $cc \$include \$link ;;
    -c | -E | -S | -M | -MM) link= ;;
    -*) ;;
    esac
done
exec $cc "\$@" \$include \$link
END
printf '#!/bin/sh\nexec %s "$@"\n' "$(command -v "${MPIEXEC:-${mpicc/mpicc/mpiexec}}")" \
    >"$directory/bin/mpiexec22"
chmod +x "$directory"/bin/mpi*
