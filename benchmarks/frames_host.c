/* The least a host can do: start an extension, then ask and wait, ask and wait.
 *
 *   frames_host EXTENSION [ARGUMENT…]
 *
 * For each number on its stdin it makes so many calls of the tool `echo` and prints the median of their
 * times in seconds.
 */
#include "lines.h"

#include <time.h>

static int to_extension;

static void write_all(const char *data, size_t size) {
    while (size > 0) {
        ssize_t written = write(to_extension, data, size);
        if (written < 0)
            exit(1);
        data += written;
        size -= (size_t)written;
    }
}

static int start(char **argv) {
    int there[2], back[2];
    if (pipe(there) < 0 || pipe(back) < 0)
        exit(1);
    if (fork() == 0) {
        dup2(there[0], 0);
        dup2(back[1], 1);
        for (int end = 0; end < 2; end++) {
            close(there[end]);
            close(back[end]);
        }
        execv(argv[0], argv);
        _exit(127);
    }
    close(there[0]);
    close(back[1]);
    to_extension = there[1];
    return back[0];
}

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static long call(struct lines *in, long number) {
    static const char text[] = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
    char line[256], id[32];
    long begun = now();
    snprintf(id, sizeof id, "%ld", number);
    int size = snprintf(line, sizeof line,
                        "{\"type\":\"tool_call\",\"id\":\"%s\",\"name\":\"echo\",\"args\":{\"text\":\"%s\"}}\n", id, text);
    write_all(line, (size_t)size);
    char *answer = next_line(in);
    if (answer == NULL || !is_string(member(answer, "id"), id) || strstr(answer, text) == NULL)
        exit(1);
    return now() - begun;
}

static int shorter(const void *one, const void *other) {
    long difference = *(const long *)one - *(const long *)other;
    return (difference > 0) - (difference < 0);
}

int main(int argc, char **argv) {
    static const char acknowledgement[] =
        "{\"type\":\"hello_ack\",\"protocol_version\":1,\"zot_version\":\"0\",\"provider\":\"\",\"model\":\"\",\"cwd\":\"/\"}\n";
    if (argc < 2)
        return 2;
    struct lines in = {.fd = start(argv + 1)}, orders = {.fd = 0};
    write_all(acknowledgement, sizeof acknowledgement - 1);
    for (char *line = next_line(&in); line == NULL || !is_string(member(line, "type"), "ready"); line = next_line(&in))
        if (line == NULL)
            return 1;
    long number = 0;
    for (char *order; (order = next_line(&orders)) != NULL;) {
        size_t count = strtoul(order, NULL, 10);
        long *taken = calloc(count + 1, sizeof *taken);
        if (taken == NULL)
            return 1;
        for (size_t i = 0; i < count; i++)
            taken[i] = call(&in, ++number);
        qsort(taken, count, sizeof *taken, shorter);
        printf("%.9f\n", (double)taken[count / 2] / 1e9);
        fflush(stdout);
        free(taken);
    }
    return 0;
}
