/* An extension in C99: the tool `add`, and a guard that does not allow sudo.

   cc -std=c99 -o checker checker.c

   There is no JSON parser here. The host writes compact JSON with "type" first and "id" second, and inside a string every quote
   is escaped, so a key with its quotes and its colon can be found as text. */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say(const char *line)
{
    puts(line);
    fflush(stdout);
}

/* One line without its newline, or NULL at the end. The buffer grows and is used again. */
static char *read_line(void)
{
    static char *line;
    static size_t room;
    size_t used = 0;
    int c;

    while ((c = getchar()) != EOF && c != '\n') {
        if (used + 1 >= room) {
            char *larger = realloc(line, room ? room * 2 : 4096);
            if (!larger) {
                fputs("out of memory\n", stderr);
                exit(1);
            }
            line = larger;
            room = room ? room * 2 : 4096;
        }
        line[used++] = (char)c;
    }
    if (used == 0)
        return c == EOF ? NULL : "";
    line[used] = '\0';
    return line;
}

static int is(const char *line, const char *type)
{
    static const char start[] = "{\"type\":\"";
    size_t length = strlen(type);

    if (strncmp(line, start, sizeof start - 1) != 0)
        return 0;
    line += sizeof start - 1;
    return strncmp(line, type, length) == 0 && line[length] == '"';
}

/* Copies the id. Ids are short and have nothing to escape. */
static void id_of(const char *line, char *id, size_t size)
{
    const char *from = strstr(line, "\"id\":\"");
    size_t length = 0;

    if (from)
        for (from += 6; from[length] && from[length] != '"' && length + 1 < size; length++)
            id[length] = from[length];
    id[length] = '\0';
}

static long number(const char *args, const char *key)
{
    const char *from = strstr(args, key);
    return from ? strtol(from + strlen(key), NULL, 10) : 0;
}

/* Is it there as a word of its own? `sudo` is, `pseudo` and `sudoku` are not. */
static int has_word(const char *text, const char *word)
{
    size_t length = strlen(word);
    const char *found = text;

    while ((found = strstr(found, word)) != NULL) {
        int before = found > text && (isalnum((unsigned char)found[-1]) || found[-1] == '_');
        int after = isalnum((unsigned char)found[length]) || found[length] == '_';
        if (!before && !after)
            return 1;
        found += length;
    }
    return 0;
}

static void add(const char *line, const char *id)
{
    const char *args = strstr(line, "\"args\":");

    if (!args)
        args = "";
    printf("{\"type\":\"tool_result\",\"id\":\"%s\",\"content\":[{\"type\":\"text\",\"text\":\"%ld\"}]}\n",
           id, number(args, "\"a\":") + number(args, "\"b\":"));
    fflush(stdout);
}

static void guard(const char *line, const char *id)
{
    const char *args = strstr(line, "\"tool_args\":");

    if (args && has_word(args, "sudo"))
        printf("{\"type\":\"event_intercept_response\",\"id\":\"%s\",\"block\":true,"
               "\"reason\":\"checker does not allow sudo\"}\n", id);
    else
        printf("{\"type\":\"event_intercept_response\",\"id\":\"%s\"}\n", id);
    fflush(stdout);
}

int main(void)
{
    char *line;
    char id[256];

    say("{\"type\":\"hello\",\"name\":\"checker\",\"version\":\"0.1.0\",\"capabilities\":[\"tools\",\"events\"]}");
    say("{\"type\":\"register_tool\",\"name\":\"add\",\"description\":\"Add two integers.\","
        "\"schema\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"integer\"}},"
        "\"required\":[\"a\",\"b\"]}}");
    say("{\"type\":\"subscribe\",\"intercept\":[\"tool_call\"]}");
    say("{\"type\":\"ready\"}");

    while ((line = read_line()) != NULL) {
        id_of(line, id, sizeof id);
        if (is(line, "tool_call"))
            add(line, id);
        else if (is(line, "event_intercept"))
            guard(line, id);
        else if (is(line, "shutdown")) {
            say("{\"type\":\"shutdown_ack\"}");
            return 0;
        } else
            fprintf(stderr, "not for us: %.60s\n", line);
    }
    return 0;
}
