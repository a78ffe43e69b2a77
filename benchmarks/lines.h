/* What the programs here share: lines in, and the members of a JSON object that stands on one line. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct lines {
    int fd;
    char *data;
    size_t size, start, end;
};

/* Whether the next line is here already. */
static inline int has_line(const struct lines *in) {
    return in->end > in->start && memchr(in->data + in->start, '\n', in->end - in->start) != NULL;
}

/* Blocks. Without its newline, good until the next call; NULL at the end of the stream. */
static inline char *next_line(struct lines *in) {
    size_t seen = in->start;
    for (;;) {
        char *newline = in->end > seen ? memchr(in->data + seen, '\n', in->end - seen) : NULL;
        if (newline != NULL) {
            char *line = in->data + in->start;
            *newline = '\0';
            in->start = (size_t)(newline - in->data) + 1;
            return line;
        }
        seen = in->end - in->start;
        if (in->start > 0) {
            memmove(in->data, in->data + in->start, seen);
            in->start = 0;
            in->end = seen;
        }
        if (in->end == in->size) {
            in->size = in->size ? 2 * in->size : 1 << 16;
            if ((in->data = realloc(in->data, in->size)) == NULL)
                exit(1);
        }
        ssize_t got = read(in->fd, in->data + in->end, in->size - in->end);
        if (got <= 0)
            return NULL;
        in->end += (size_t)got;
    }
}

/* The quote that ends the string which begins here, or the end of the text. */
static inline const char *closing_quote(const char *at) {
    while (*at != '\0' && *at != '"')
        at += at[0] == '\\' && at[1] != '\0' ? 2 : 1;
    return at;
}

/* Where the value of this member of the object begins; NULL when it has none, or when there is no object. */
static inline const char *member(const char *object, const char *name) {
    size_t length = strlen(name);
    int depth = 0;
    for (const char *at = object; at != NULL && *at != '\0'; at++) {
        if (*at == '{' || *at == '[') {
            depth++;
        } else if (*at == '}' || *at == ']') {
            if (--depth == 0)
                return NULL;
        } else if (*at == '"') {
            const char *key = at + 1;
            at = closing_quote(key);
            if (*at == '\0')
                return NULL;
            if (depth == 1 && at[1] == ':' && (size_t)(at - key) == length && memcmp(key, name, length) == 0)
                return at + 2 + strspn(at + 2, " ");
        }
    }
    return NULL;
}

/* Print what stands between the quotes of a string, as it is; nothing for any other value. */
static inline void print_string(const char *value) {
    if (value != NULL && *value == '"')
        fwrite(value + 1, 1, (size_t)(closing_quote(value + 1) - value - 1), stdout);
}

static inline int is_string(const char *value, const char *text) {
    size_t length = strlen(text);
    return value != NULL && *value == '"' && strncmp(value + 1, text, length) == 0 && value[1 + length] == '"';
}
