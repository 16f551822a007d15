/* SPDX-License-Identifier: MIT */
/* What a simulated machine is like: LogGP parameters (Alexandrov, Ionescu, Schauser, Scheiman,
 * "LogGP: incorporating long messages into the LogP model", 1995) between nodes and within them,
 * and what a processor does with bytes. Seconds everywhere. */
#ifndef NBCSIM_NETWORK_H
#define NBCSIM_NETWORK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct link {
    double L; /* from one end to the other */
    double o; /* a processor is busy with a message, at either end */
    double g; /* a port rests between two messages */
    double G; /* per byte */
};

struct network {
    char name[64];
    struct link between, within; /* nodes */
    double reduce, copy;         /* per byte */
    double noise;                /* times are 1 + noise · X of these, X exponential with mean 1 */
    uint64_t seed;
    int64_t eager;  /* longer messages wait for their receive to be posted */
    int ppn;        /* ranks r · ppn … (r + 1) · ppn − 1 share node r */
    bool own_ports; /* every rank has a port to the network; else its node has one */
};

/* One of the networks that come with the program, or a file that network_write wrote or a person.
 * False, and a line on stderr, when there is no such thing or it is not understood. */
bool network_read(struct network *net, const char *name_or_file);

/* "L=2500": what a line of the file says. False: not understood. */
bool network_set(struct network *net, const char *line);

void network_write(const struct network *net, FILE *out);

/* The names of those that come with the program, and where their numbers are from. */
void network_list(FILE *out);

#endif
