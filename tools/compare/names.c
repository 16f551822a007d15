/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "names.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char between[] = " < "; /* a function and its caller */

static const char *base_of(const char *file)
{
    return strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
}

/* --- the symbols of a file: of every function, unless it is stripped -----------------------------
 */

struct elf {
    const char *bytes;
    size_t size;
};

static const void *elf_at(const struct elf *e, uint64_t offset, uint64_t size)
{
    return offset <= e->size && size <= e->size - offset ? e->bytes + offset : NULL;
}

/* The function in which an address lies, by its size; NULL: in none. */
static const char *find_in_table(const struct elf *e, const ElfW(Shdr) * table,
                                 const ElfW(Shdr) * names, unsigned long address)
{
    const ElfW(Sym) *symbols = elf_at(e, table->sh_offset, table->sh_size);
    const char *text = elf_at(e, names->sh_offset, names->sh_size);
    for (size_t i = 0; symbols && text && i < table->sh_size / sizeof *symbols; i++) {
        const ElfW(Sym) *s = &symbols[i];
        if ((s->st_info & 15) == STT_FUNC && address >= s->st_value &&
            address - s->st_value < s->st_size && s->st_name < names->sh_size)
            return text + s->st_name;
    }
    return NULL;
}

static const char *find_function(const struct elf *e, unsigned long address)
{
    const ElfW(Ehdr) *head = elf_at(e, 0, sizeof *head);
    const char *found = NULL;
    if (!head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
        head->e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32))
        return NULL;
    const ElfW(Shdr) *s = elf_at(e, head->e_shoff, (uint64_t)head->e_shnum * sizeof *s);
    for (int i = 0; s && i < head->e_shnum && !found; i++)
        if (s[i].sh_type == SHT_SYMTAB && s[i].sh_link < head->e_shnum)
            found = find_in_table(e, &s[i], &s[s[i].sh_link], address);
    return found;
}

static char *symbol_of_file(const char *file, unsigned long address)
{
    struct stat status;
    char *name = NULL;
    int in = open(file, O_RDONLY);
    if (in >= 0 && fstat(in, &status) == 0 && status.st_size > 0) {
        void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, in, 0);
        if (bytes != MAP_FAILED) {
            const struct elf e = {bytes, (size_t)status.st_size};
            const char *found = find_function(&e, address);
            name = found ? strdup(found) : NULL;
            munmap(bytes, e.size);
        }
    }
    if (in >= 0)
        close(in);
    return name;
}

/* --- what commands tell --------------------------------------------------------------------------
 */

/* What a command prints; NULL if nothing. */
static char *read_command(const char *command)
{
    char *text = NULL;
    size_t room = 0;
    FILE *in = popen(command, "r");
    bool good = in && getdelim(&text, &room, '\0', in) > 0;
    if (in)
        pclose(in);
    return good ? text : NULL;
}

static char *demangled(char *symbol)
{
    char *command = NULL, *name;
    if (strncmp(symbol, "_Z", 2) != 0 || strchr(symbol, '\'') ||
        asprintf(&command, "c++filt '%s' 2>/dev/null", symbol) < 0 ||
        !(name = read_command(command)))
        return symbol;
    name[strcspn(name, "\n")] = '\0';
    return *name ? name : symbol;
}

/* "file.c:12 function", then in further lines the callers into which the compiler has put it.
 * addr2line also names the nearest symbol before an address that lies in no function: where it
 * knows the line, it knows the function too. */
static char *ask_addr2line(const struct frame *f)
{
    char *command = NULL, *rest = NULL, *name = NULL;
    if (strchr(f->file, '\'') ||
        asprintf(&command, "addr2line -i -f -C -e '%s' %lx 2>/dev/null", f->file, f->address - 1) <
            0 ||
        !(rest = read_command(command)))
        return NULL;
    char *function, *line;
    while ((function = strsep(&rest, "\n")) && (line = strsep(&rest, "\n"))) {
        line[strcspn(line, " ")] = '\0';
        const char *number = strrchr(line, ':');
        if (*function == '?' || *line == '?' || !number || number[1] < '1' || number[1] > '9' ||
            asprintf(&name, "%s%s%s %s", name ? name : "", name ? "\n" : "", base_of(line),
                     function) < 0)
            break;
    }
    return name;
}

static char *name_of_line(const struct frame *f)
{
    char *name;
    const char *function = f->symbol + 1;
    bool module = strcmp(function, "<module>") == 0;
    int n = asprintf(&name, "%s:%lu%s%s", base_of(f->file), f->address, module ? "" : " ",
                     module ? "" : function);
    return n < 0 ? NULL : name;
}

static char *make_name(const struct frame *f, bool *known)
{
    if (is_python(f)) {
        *known = true;
        return name_of_line(f);
    }
    char *name = ask_addr2line(f), *symbol = NULL;
    *known = true;
    if (name)
        return name;
    symbol = symbol_of_file(f->file, f->address - 1);
    if (!symbol && *f->symbol != '?')
        symbol = strdup(f->symbol);
    *known = symbol != NULL;
    int n = symbol ? asprintf(&name, "%s %s", base_of(f->file), demangled(symbol))
                   : asprintf(&name, "%s+0x%lx", base_of(f->file), f->address - 1);
    return n < 0 ? NULL : name;
}

/* --- once for each frame -------------------------------------------------------------------------
 */

static const char *find_name(const struct frame *f, bool *known)
{
    static struct named {
        struct frame frame;
        const char *name;
        bool known;
    } * all;
    static int n;
    for (int i = 0; i < n; i++)
        if (all[i].frame.address == f->address && strcmp(all[i].frame.file, f->file) == 0) {
            *known = all[i].known;
            return all[i].name;
        }
    const char *name = make_name(f, known);
    struct named *more = realloc(all, (n + 1) * sizeof *more);
    char *file = strdup(f->file);
    if (!more || !name || !file)
        return "?"; /* unreached: no memory */
    all = more;
    all[n++] = (struct named){{f->address, "", file}, name, *known};
    return name;
}

const char *frame_name(const struct frame *f, int callers, bool *known)
{
    const char *lines = find_name(f, known);
    char *text = malloc(3 * strlen(lines) + 1), *end = text;
    if (!text)
        return "?"; /* unreached: no memory */
    for (; *lines && (*lines != '\n' || callers-- > 0); lines++)
        end = *lines == '\n' ? stpcpy(end, between) : (*end = *lines, end + 1);
    *end = '\0';
    return text;
}

const char *name_in_object(const struct frame *f, const char *name)
{
    size_t n = strlen(base_of(f->file));
    return strncmp(name, base_of(f->file), n) == 0 && name[n] == ' ' ? name + n + 1 : NULL;
}

/* The length without the arguments of a function of C++. */
static int without_arguments(const char *name, int length)
{
    int depth = 0;
    if (length == 0 || name[length - 1] != ')')
        return length;
    for (int i = length - 1; i > 0; i--) {
        depth += (name[i] == ')') - (name[i] == '(');
        if (depth == 0)
            return i;
    }
    return length;
}

/* What tells functions apart is the line, and the end of their names. */
static int shorten_one(const char *name, int length, char *text, int most)
{
    if (length > most)
        length = without_arguments(name, length);
    if (length <= most)
        return sprintf(text, "%.*s", length, name);
    const char *space = memchr(name, ' ', length), *colon = memchr(name, ':', length);
    int line = space && colon && colon < space ? (int)(space - name) + 1 : 0;
    if (line > most - 4)
        line = 0;
    int end = most - line - 2;
    return sprintf(text, "%.*s..%.*s", line, name, end, name + length - end);
}

const char *name_shortened(const char *name, char *text, int most)
{
    int parts = 1, n = 0;
    if ((int)strlen(name) <= most)
        return strcpy(text, name);
    for (const char *at = name; (at = strstr(at, between)); at++)
        parts++;
    int each = (most - (parts - 1) * (int)strlen(between)) / parts;
    for (const char *end; name; name = end ? end + strlen(between) : NULL) {
        end = strstr(name, between);
        n += sprintf(text + n, "%s", n ? between : "");
        n += shorten_one(name, end ? (int)(end - name) : (int)strlen(name), text + n,
                         end ? each : most - n);
    }
    return text;
}
