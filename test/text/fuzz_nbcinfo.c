/* SPDX-License-Identifier: MIT */
/* nbcinfo with any arguments, for libFuzzer: it explains what it does not understand, and otherwise
 * shows what it was asked for. test/text/run.sh builds and runs it. */
#include <stdio.h>

/* It calls Graphviz for --svg. */
#define popen(command, mode) fopen("/dev/null", mode)
#define pclose fclose
#define main nbcinfo_main
#include "../../tools/info/installed.c"
#include "../../tools/info/predicted.c"
#include "../../tools/nbcinfo.c"
#undef main

#include "arguments.h"

/* Schedules of many ranks or many segments take seconds. */
static bool is_small(void)
{
    const struct tool_call *call = &info_options.call;
    int64_t piece = call->segment ? call->segment : 64;
    return call->size <= 40 && call->remote_size <= 40 && call->bytes / piece <= 2000;
}

static void forget(void)
{
    info_options = (struct info_options){.call = {.size = 4, .bytes = 1024}, .only = -1};
    help = version = false;
    optind = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct arguments_of_input input;
    char program[] = "nbcinfo";
    if (!input_arguments(&input, program, data, size))
        return -1;
    forget();
    if (read_options(input.n, input.at) < 0 && info_options.schedule && !is_small())
        return -1;
    /* getopt_long has put the options first. */
    forget();
    int status = nbcinfo_main(input.n, input.at);
    if (status < 0 || status > 2)
        __builtin_trap();
    return 0;
}
