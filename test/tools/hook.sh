#!/usr/bin/env bash
# The hook in the progress loop of the MPI: where it is used, nbcinfo and the statistics say so; where
# it cannot be trusted, on any rank, all ranks do without.

. "$(dirname "$0")/../lib.sh"
forget_settings
by="by $NBC_HOOK" blocking="the MPI's"
case $NBC_HOOK in ucp* | fi*) blocking="nbcshim's" ;; esac

# fake NAME: a library whose functions have the names of the MPI's. They do nothing for nbcshim; the
# MPI, which calls them too, needs its own.
fake()
{
    cat >"$scratch/fake.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#define FAKE(name)                                                                       \
    int name(int (*function)(void))                                                      \
    {                                                                                    \
        Dl_info caller;                                                                  \
        int (*real)(int (*)(void)) = (int (*)(int (*)(void)))dlsym(RTLD_NEXT, #name);    \
        int found = dladdr(__builtin_return_address(0), &caller);                        \
        return found && strstr(caller.dli_fname, "libnbcshim") ? !function : real(function); \
    }
FAKE(opal_progress_register)
FAKE(opal_progress_unregister)
END
    $CC -shared -fPIC -o "$scratch/$1" "$scratch/fake.c" -ldl
    expect "a library $1" test -f "$scratch/$1"
}

# run NAME SAYS PRELOADED VARIABLES: the program passes, and the statistics say that.
run()
{
    mpi_command 3 "$(sanitizer_runtime) $library $3" "NBCSHIM_STATS=1 $4" \
        "$PWD/test/mpi/progress.preload" recv barrier
    ends_well "$1" 60
    log_has 1 "$1: ${2//[()\\.]/}" "progress in the MPI's own waits: $2$"
}

# info NAME SAYS VARIABLES
info()
{
    env $3 "$PWD/tools/nbcinfo" >"$scratch/log" 2>&1
    log_has 1 "nbcinfo: $1" "^progress +$2"
}

if [ "$NBC_HOOK" = no ]; then
    why='this MPI does not call registered functions in its progress loop'
    run "an MPI without a hook" "no \\($why\\)"
    info "an MPI without a hook" "in nbcshim's calls \\($why\\)"
    finish
    exit
fi

run "a hook" "$by"
log_has 1 "a hook: blocking collectives" "blocking collectives: $blocking"
info "a hook" "in all waits of the MPI, $by"
run "own blocking collectives" "$by" "" NBCSHIM_BLOCKING=own
log_has 1 "own blocking collectives: of nbcshim" "blocking collectives: nbcshim's"
run "checks" "$by" "" NBCSHIM_CHECK=1
log_has 1 "checks: of nbcshim" "blocking collectives: nbcshim's"
off='NBCSHIM_HOOK=off, or a rank that has no hook'
run "switched off" "no \\($off\\)" "" NBCSHIM_HOOK=off
log_has 1 "switched off: blocking collectives of nbcshim" "blocking collectives: nbcshim's"
info "switched off" "in nbcshim's calls \\(NBCSHIM_HOOK=off\\)" NBCSHIM_HOOK=off

if [ "$MPI_FLAVOR" != openmpi ]; then
    finish
    exit
fi

# One rank alone cannot: the others must carry out the blocking collectives as it does.
mpi_command 1 "$(sanitizer_runtime) $library" "NBCSHIM_STATS=1 NBCSHIM_HOOK=off" \
    "$PWD/test/mpi/progress.preload" recv barrier
launch+=(: -x "LD_PRELOAD=$(echo $(sanitizer_runtime) $library | tr ' ' :)" -n 2
    "$PWD/test/mpi/progress.preload" recv barrier)
ends_well "one rank without" 60
log_has 1 "one rank without: none has one" "waits: no \\($off\\)$"

fake other.so
run "a function of another library" \
    'no \(no opal_progress_register in Open MPI\)' "$scratch/other.so"
fake libopen-pal-other.so
run "a function without effect" \
    'no \(opal_progress_register does not have the expected effect\)' \
    "$scratch/libopen-pal-other.so"

finish
