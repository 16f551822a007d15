/* SPDX-License-Identifier: MIT */
#include "meter.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static struct {
    int file; /* the terminal, −1: none */
    int total, steps;
    bool opened, shown;
    time_t begun;
} meter = {.file = -1};

/* Whether a process belongs to a launcher of an MPI. Sets *parent to its parent. */
static bool is_launcher(pid_t process, pid_t *parent)
{
    static const char *const names[] = {"mpiexec", "mpirun", "orterun", "orted",
                                        "prterun", "prted",  "hydra_",  "srun"};
    char path[64], name[64] = "";
    int id = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    FILE *in = fopen(path, "r");
    bool known = in && fscanf(in, "%*d (%63[^)]) %*c %d", name, &id) == 2;
    if (in)
        fclose(in);
    *parent = id;
    for (size_t i = 0; known && i < sizeof names / sizeof *names; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* The standard error of a launcher, if that is a terminal, since that of its processes is a pipe;
 * else −1. */
static int find_terminal(void)
{
    pid_t parent, process = getppid();
    for (; process > 1 && is_launcher(process, &parent); process = parent) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/fd/2", (int)process);
        int file = open(path, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
        if (file >= 0 && isatty(file))
            return file;
        if (file >= 0)
            close(file);
    }
    return -1;
}

void meter_begin(int total, int launched)
{
    meter_end();
    meter.total = total;
    meter.steps = 0;
    meter.begun = time(NULL);
    if (isatty(STDERR_FILENO))
        meter.file = STDERR_FILENO;
    else if (launched)
        meter.file = find_terminal();
    meter.opened = meter.file >= 0 && meter.file != STDERR_FILENO;
}

/* The time that is left if the other steps take as long as those that are done. */
static void say_rest(void)
{
    int done = meter.steps - 1;
    double took = difftime(time(NULL), meter.begun);
    if (done < 1 || took < 5)
        return;
    double rest = took * (meter.total - done) / done;
    if (rest < 120)
        dprintf(meter.file, ", %.0f s left", rest);
    else
        dprintf(meter.file, ", %.0f min left", rest / 60);
}

static void write_line(const char *format, va_list list)
{
    if (meter.file < 0)
        return;
    if (meter.opened) /* what was written before passes through the launcher */
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    dprintf(meter.file, "\r");
    if (meter.total > 0) {
        dprintf(meter.file, "%3d%% (%d of %d", 100 * (meter.steps - 1) / meter.total, meter.steps,
                meter.total);
        say_rest();
        dprintf(meter.file, ") ");
    }
    vdprintf(meter.file, format, list);
    dprintf(meter.file, "\033[K");
    meter.shown = true;
}

void meter_step(const char *format, ...)
{
    va_list list;
    meter.steps++;
    va_start(list, format);
    write_line(format, list);
    va_end(list);
}

void meter_say(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    write_line(format, list);
    va_end(list);
}

void meter_clear(void)
{
    if (meter.shown)
        dprintf(meter.file, "\r\033[K");
    meter.shown = false;
}

void meter_end(void)
{
    meter_clear();
    if (meter.opened)
        close(meter.file);
    meter.file = -1;
    meter.opened = false;
}
