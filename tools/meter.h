/* SPDX-License-Identifier: MIT */
/* A line on the terminal that tells how far a long run is. Nothing is written if there is no
 * terminal. */
#ifndef NBC_TOOLS_METER_H
#define NBC_TOOLS_METER_H

/* Begins a run of `total` steps, 0 if their number is not known. launched: whether a launcher may
 * have started this process; if standard error is not a terminal, that of the launcher is used. */
void meter_begin(int total, int launched);

/* Begins a step, with a text for printf that says what it does. */
void meter_step(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Says with another text what the same step does. */
void meter_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Clears the line, before something else is written on the terminal; the next step writes it again.
 * meter_end: for the last time. */
void meter_clear(void);
void meter_end(void);

#endif
