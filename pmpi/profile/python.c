/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
/* The lines of Python from which the program calls MPI: the stack of the interpreter's functions is
 * the same for all of them. */
#include "profile/record.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"

/* What Python exports, here without its header; all objects are void *. */
#define PYTHON(F)                                             \
    F(int, Py_IsInitialized, (void))                          \
    F(void, Py_DecRef, (void *))                              \
    F(void *, PyGILState_GetThisThreadState, (void))          \
    F(int, PyGILState_Ensure, (void))                         \
    F(void, PyGILState_Release, (int))                        \
    F(void *, PyErr_Occurred, (void))                         \
    F(void *, PyEval_GetFrame, (void))                        \
    F(void *, PyFrame_GetBack, (void *))                      \
    F(void *, PyFrame_GetCode, (void *))                      \
    F(int, PyFrame_GetLineNumber, (void *))                   \
    F(void *, PyObject_GetAttrString, (void *, const char *)) \
    F(const char *, PyUnicode_AsUTF8, (void *))

#define POINTER(type, name, params) type(*name) params;
static struct {
    PYTHON(POINTER)
} python;

static bool is_python;

enum { DEPTH = 4 };

/* Of code objects, which are kept: another one never has the same address. */
struct place {
    void *code;
    size_t line;
};

struct nbc_python {
    struct place place[DEPTH]; /* the key; unused ones are 0 */
    char *text;                /* as it is written, when there may be no Python any more */
    UT_hash_handle hh;
};

static struct nbc_python *all;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* Python need not have a GIL */

void nbc_python_setup(void)
{
    void *found;
    is_python = true;
#define LOOK_UP(type, name, params)     \
    found = dlsym(RTLD_DEFAULT, #name); \
    is_python = is_python && found;     \
    memcpy(&python.name, &found, sizeof found);
    PYTHON(LOOK_UP)
}

/* Adds the lines with a reference to each code object, which the caller drops unless it keeps them.
 */
static void look(struct place *place)
{
    void *frame = python.PyEval_GetFrame(), *inner = NULL; /* the first one is borrowed */
    for (int i = 0; frame && i < DEPTH; i++) {
        place[i].code = python.PyFrame_GetCode(frame);
        place[i].line = (size_t)python.PyFrame_GetLineNumber(frame);
        void *outer = python.PyFrame_GetBack(frame);
        if (inner)
            python.Py_DecRef(inner);
        frame = inner = outer;
    }
    if (inner)
        python.Py_DecRef(inner);
}

/* An attribute of a code object; "?" where it is no text. */
static void write_text(FILE *out, void *code, const char *name)
{
    void *text = python.PyObject_GetAttrString(code, name);
    const char *bytes = text ? python.PyUnicode_AsUTF8(text) : NULL;
    for (const char *c = bytes ? bytes : "?"; *c; c++)
        fputc((unsigned char)*c < ' ' ? '?' : *c, out);
    if (text)
        python.Py_DecRef(text);
}

static char *text_of(const struct place *place)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (int i = 0; out && i < DEPTH && place[i].code; i++) {
        fprintf(out, "\t%zx :", place[i].line);
        write_text(out, place[i].code, "co_name");
        fputc(' ', out);
        write_text(out, place[i].code, "co_filename");
    }
    return out && fclose(out) == 0 ? text : NULL;
}

static const struct nbc_python *keep(const struct place *place)
{
    struct nbc_python *p;
    pthread_mutex_lock(&mutex);
    HASH_FIND(hh, all, place, sizeof p->place, p);
    bool known = p;
    if (!p && (p = calloc(1, sizeof *p))) {
        memcpy(p->place, place, sizeof p->place);
        p->text = text_of(place);
        HASH_ADD(hh, all, place, sizeof p->place, p);
    }
    pthread_mutex_unlock(&mutex);
    for (int i = 0; (known || !p) && i < DEPTH && place[i].code; i++)
        python.Py_DecRef(place[i].code);
    return p;
}

const struct nbc_python *nbc_python_find(void)
{
    struct place place[DEPTH] = {{0}};
    const struct nbc_python *found = NULL;
    if (!is_python || !python.Py_IsInitialized() || !python.PyGILState_GetThisThreadState())
        return NULL;
    int state = python.PyGILState_Ensure();
    look(place);
    if (place[0].code)
        found = keep(place);
    python.PyGILState_Release(state);
    return found;
}

void nbc_python_write(FILE *out, const struct nbc_python *lines)
{
    if (lines && lines->text)
        fputs(lines->text, out);
}
