/* SPDX-License-Identifier: MIT */
/* nbcsim with any arguments, for libFuzzer: it explains what it does not understand, and simulates
 * what is small. test/text/run.sh builds and runs it. */
#define main nbcsim_main
#include "../../tools/nbcsim/nbcsim.c"
#undef main

#include "arguments.h"

/* Files are written by --plot and --goal; --build-cost measures times, and rules take many
 * simulations. */
static bool is_small(const struct options *o, int n)
{
    if (o->plot || o->goal || o->build_cost || o->advice || n > 2 || o->ranks.n * o->bytes.n > 6)
        return false;
    for (int i = 0; i < o->ranks.n; i++)
        if (o->ranks.at[i] > 40)
            return false;
    for (int i = 0; i < o->bytes.n; i++)
        if (o->bytes.at[i] / (o->segment ? o->segment : 64) > 2000)
            return false;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct arguments_of_input input;
    char program[] = "nbcsim", ranks[] = "-n8", limit[] = "--limit=20000";
    struct options o = {
        .format = &format_table, .rules = &nbc_default_rules, .limits = {.ops = 50000000}};
    if (!input_arguments(&input, program, data, size))
        return -1;
    network_read(&o.net, "infiniband");
    optind = 0;
    int status = read_options(&o, input.n, input.at), given = input.n - optind;
    struct nbc_rules *rules = o.rules == &nbc_default_rules ? NULL : (struct nbc_rules *)o.rules;
    nbc_rules_free(rules);
    if (status || !is_small(&o, given))
        return 0;
    /* getopt_long has put the options first; what comes last counts. */
    memmove(&input.at[3], &input.at[1], (size_t)(input.n - 1) * sizeof *input.at);
    input.at[1] = ranks;
    input.at[2] = limit;
    input.n += 2;
    input.at[input.n] = NULL;
    optind = 0;
    status = nbcsim_main(input.n, input.at);
    if (status != 0 && status != 2)
        __builtin_trap();
    return 0;
}
