/* SPDX-License-Identifier: MIT */
/* The command line of a program as a fuzzer's input: one argument in each line. */
#ifndef NBC_TEXT_ARGUMENTS_H
#define NBC_TEXT_ARGUMENTS_H

#include <stdint.h>
#include <string.h>

struct arguments_of_input {
    int n;
    char *at[24]; /* the name of the program first, NULL last */
    char text[1024];
};

/* Returns the number of arguments, 0 if there are too many. */
static inline int input_arguments(struct arguments_of_input *a, char *program, const uint8_t *data,
                                  size_t size)
{
    enum { MOST = sizeof a->at / sizeof *a->at - 3 };
    char *rest;
    if (size >= sizeof a->text)
        return 0;
    memcpy(a->text, data, size);
    a->text[size] = '\0';
    a->at[0] = program;
    a->n = 1;
    for (char *line = strtok_r(a->text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (a->n > MOST)
            return 0;
        a->at[a->n++] = line;
    }
    a->at[a->n] = NULL;
    return a->n;
}

#endif
