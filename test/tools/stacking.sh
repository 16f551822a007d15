#!/usr/bin/env bash
# Tools (tracer.c) and nbcshim in every order: each tool sees every call of the program (traced.c)
# once, and none that nbcshim or the MPI makes. And a program that calls the MPI past nbcshim.

. "$(dirname "$0")/../lib.sh"
tools=$srcdir/test/tools
ranks=3
calls="Allreduce_init 1 Barrier 1 Comm_dup 1 Comm_free 1 Finalize 1 Iallreduce 4 Ibarrier 2 Init 1 Isend 1"
calls="$calls Recv 1 Request_free 1 Start 4 Wait 8 Waitall 1"

compile() # arguments...
{
    $CC -std=gnu11 -O2 -I"$srcdir/include" $MPI_CPPFLAGS "$@"
}

# Optimized, a tool jumps to PMPI_X, which then seems to be called by the tool's caller.
make_tool() # name flags...
{
    local name=$1
    shift
    compile "$@" -DTRACER="\"$name\"" -shared -fPIC -o "$scratch/lib$name.so" "$tools/tracer.c"
}

link_program() # name arguments...
{
    local name=$1
    shift
    compile -o "$scratch/$name" "$tools/traced.c" "$@" $MPI_LIBS -Wl,-rpath,"$scratch" \
        -Wl,-rpath,"$PWD/.libs"
}

# What a tool has to print, all ranks in order.
expected() # tool
{
    local rank
    for ((rank = 0; rank < ranks; rank++)); do
        echo "$1 rank $rank: $calls"
    done
}

# The second of two tools sees what nbcshim stands for. Other functions the first one keeps to
# itself, as it does without nbcshim: it calls the MPI.
second()
{
    expected "$1" | sed 's/ Isend [0-9]*//'
}

# sees NAME PROGRAM PRELOAD TOOL [SECOND]: runs it; both have seen every call once.
sees()
{
    local name=$1 program=$2 preload=$3 tool view=expected
    shift 3
    rm -f "$scratch/seen"
    mpi_command $ranks "$(sanitizer_runtime) $preload" "TRACER_LOG=$scratch/seen" "$scratch/$program"
    ends_well "$name: runs" 60
    for tool; do
        diff <($view "$tool") <(grep "^$tool rank" "$scratch/seen" | sort) >"$scratch/diff"
        result $? "$name: $tool sees each call once" "$(cat "$scratch/diff")"
        view=second
    done
}

expect "the tools compile" make_tool one
expect "the tools compile, with frames" make_tool two -fno-optimize-sibling-calls
one=$scratch/libone.so
two=$scratch/libtwo.so

# A program that knows nothing of nbcshim.
expect "the program links without nbcshim" link_program plain
sees "preloaded before" plain "$one $library" one
sees "preloaded behind" plain "$library $one" one
sees "preloaded before, with frames" plain "$two $library" two
sees "preloaded behind, with frames" plain "$library $two" two
sees "one before, the other behind" plain "$one $library $two" one two
sees "and the other way round" plain "$two $library $one" two one

# Two tools on the same side: without nbcshim too, the first hides the second.
sees "both before" plain "$one $two $library" one
sees "both behind" plain "$library $one $two" one

tool_object()
{
    compile -DWEAK -DTRACER="\"inside\"" -c -o "$scratch/inside.o" "$tools/tracer.c"
}
expect "a tool in the program compiles" tool_object
expect "it links" link_program inside "$scratch/inside.o" -Wl,--export-dynamic
sees "in the program, nbcshim preloaded" inside "$library" inside
sees "in the program, another behind" inside "$library $two" inside two

# A program linked with nbcshim.
shim="-DLINKED -L$PWD/.libs -l$NBC_NAME"
link_tool="-L$scratch -Wl,--no-as-needed"
expect "linked: nbcshim" link_program linked $shim
sees "linked, tool preloaded" linked "$one" one
expect "linked: tool, nbcshim" link_program before $link_tool -lone $shim
sees "linked: tool, nbcshim" before "" one
expect "linked: nbcshim, tool" link_program behind $shim $link_tool -lone
sees "linked: nbcshim, tool" behind "" one
sees "linked: nbcshim, tool; another preloaded" behind "$two" two one
expect "linked: tool in the program" link_program within "$scratch/inside.o" $shim
sees "linked: tool in the program" within "" inside

expect "the static library links" link_program static -DLINKED -L"$PWD/.libs" \
    -l:lib$NBC_NAME.a $NBC_LDFLAGS $LIBS
sees "the static library" static ""

# A tool in such a program would stand beside nbcshim, not above it: it calls PMPI_X, which is the
# MPI's. The linker refuses, as soon as the program makes a call that the tool does not know.
! link_program both "$scratch/inside.o" -Wl,-u,MPI_Comm_split -L"$PWD/.libs" -l:lib$NBC_NAME.a 2>"$scratch/refused" &&
    grep -q 'multiple definition' "$scratch/refused"
result $? "a tool and the static library do not link"

if mpi_has Iallreduce; then
    expect "a program that initializes the MPI past nbcshim compiles" \
        compile -o "$scratch/past" "$tools/past.c" $MPI_LIBS -ldl
    preloaded "it runs, by the MPI alone" $ranks "" "$scratch/past"
fi

finish
