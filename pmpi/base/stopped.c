/* SPDX-License-Identifier: MIT */
#include "base/stopped.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The file that a process runs; false for processes of other users. */
static bool program_of(const char *process, char program[PATH_MAX])
{
    char link[64];
    snprintf(link, sizeof link, "/proc/%.20s/exe", process);
    ssize_t n = readlink(link, program, PATH_MAX - 1);
    program[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* The text after a name at the beginning of a line: "State:", "TracerPid:". */
static const char *field(const char *text, const char *name)
{
    const char *found = strstr(text, name);
    return found ? found + strlen(name) + strspn(found + strlen(name), "\t ") : "";
}

static bool is_stopped(const char *process)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%.20s/status", process);
    FILE *file = fopen(path, "re");
    if (!file)
        return false; /* unreached: a moment between two threads */
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    char state = *field(text, "\nState:"), tracer = *field(text, "\nTracerPid:");
    return state == 'T' || state == 't' || (tracer && tracer != '0');
}

bool nbc_any_is_stopped(void)
{
    char own[PATH_MAX], other[PATH_MAX];
    bool found = false;
    DIR *processes = program_of("self", own) ? opendir("/proc") : NULL;
    if (!processes)
        return false; /* unreached: a moment between two threads */
    for (struct dirent *d; !found && (d = readdir(processes)) != NULL;)
        found = *d->d_name >= '1' && *d->d_name <= '9' && program_of(d->d_name, other) &&
                strcmp(own, other) == 0 && is_stopped(d->d_name);
    closedir(processes);
    return found;
}
