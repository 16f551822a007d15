/* SPDX-License-Identifier: MIT */
/* The parameters of a simulated machine: LogGP (Alexandrov, Ionescu, Schauser, Scheiman, "LogGP:
 * incorporating long messages into the LogP model", 1995) between nodes and within them, and the
 * speed of processors. All times are in seconds. */
#ifndef NBCSIM_NETWORK_H
#define NBCSIM_NETWORK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct link {
    double L; /* latency */
    double o; /* overhead of a processor per message, at either end */
    double g; /* gap of a port between two messages */
    double G; /* gap per byte */
};

struct network {
    char name[64];
    struct link between, within; /* between nodes; within a node */
    double reduce, copy;         /* time per byte */
    double noise;                /* times are scaled by 1 + noise · X, X exponential with mean 1 */
    uint64_t seed;
    int64_t eager;    /* bytes; longer messages wait until their receive is posted */
    double handshake; /* what longer messages between nodes take more at least; 0: two latencies */
    int ppn;          /* ranks per node: r · ppn … (r + 1) · ppn − 1 share node r */
    bool sockets;     /* for the conditions of rules */
    bool own_ports;   /* every rank has a port to the network; otherwise every node has one */
};

/* Reads a predefined network, or a file in the format of network_write. Returns false after a
 * message on standard error if it does not exist or has a syntax error. */
bool network_read(struct network *net, const char *name_or_file);

/* Sets a parameter from a line of such a file, "L=2500". Returns false on a syntax error. */
bool network_set(struct network *net, const char *line);

void network_write(const struct network *net, FILE *out);

/* Lists the predefined networks with the sources of their parameters. */
void network_list(FILE *out);

#endif
