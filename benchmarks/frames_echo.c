/* An extension of the frames dialect that does next to nothing, so that what is measured is the host.
 *
 *   frames_echo [-t TOOL] [-e EVENT] [-i EVENT] [-r SUFFIX] [-a FIFO] [-d FIFO]
 *
 * -t  the name of its tool: {"text": T} answers T, with {"size": N} made up to N bytes; with {"structured": N}
 *     N bytes of structured content come with it; {"report": true} answers how many events came, how many of
 *     them in the wrong order, and the step of the last one
 * -e  observe this event          -a  write one byte here for each event that came
 * -i  intercept this event        -r  append this to the text of the arguments, instead of allowing
 * -d  once ready, read nothing until somebody opens this for writing
 */
#include "lines.h"

#include <fcntl.h>

static const char *tool = "echo", *observed, *intercepted, *suffix, *acks, *deaf;
static unsigned long events, disordered;
static long last = -1, unacknowledged;
static int ack_fd = -1;

static void introduce(void) {
    printf("{\"type\":\"hello\",\"name\":\"%s\",\"version\":\"1\",\"capabilities\":[\"tools\",\"events\"]}\n", tool);
    printf("{\"type\":\"register_tool\",\"name\":\"%s\",\"description\":\"echo\",\"schema\":{\"type\":\"object\","
           "\"properties\":{\"text\":{\"type\":\"string\"},\"size\":{\"type\":\"integer\"},"
           "\"structured\":{\"type\":\"integer\"},\"report\":{\"type\":\"boolean\"}}}}\n", tool);
    if (observed != NULL)
        printf("{\"type\":\"subscribe\",\"events\":[\"%s\"]}\n", observed);
    if (intercepted != NULL)
        printf("{\"type\":\"subscribe\",\"intercept\":[\"%s\"]}\n", intercepted);
    printf("{\"type\":\"ready\"}\n");
    fflush(stdout);
}

/* Lines of text, since few real answers have none: so many bytes of JSON, in one piece. */
static void print_padding(size_t size) {
    static char *padding;
    static size_t filled;
    if (size > filled && (padding = realloc(padding, size)) == NULL)
        exit(1);
    for (; filled < size; filled++)
        padding[filled] = filled % 64 == 62 ? '\\' : filled % 64 == 63 ? 'n' : 'x';
    fwrite(padding, 1, size, stdout);
}

static void answer_call(const char *line) {
    const char *args = member(line, "args");
    const char *text = member(args, "text"), *size = member(args, "size"), *structured = member(args, "structured");
    fputs("{\"type\":\"tool_result\",\"id\":\"", stdout);
    print_string(member(line, "id"));
    fputs("\",\"content\":[{\"type\":\"text\",\"text\":\"", stdout);
    if (member(args, "report") != NULL)
        printf("%lu %lu %ld", events, disordered, last);
    print_string(text);
    if (size != NULL) {
        size_t wanted = strtoul(size, NULL, 10);
        size_t given = text != NULL ? (size_t)(closing_quote(text + 1) - text - 1) : 0;
        if (wanted > given)
            print_padding(wanted - given);
    }
    fputs("\"}]", stdout);
    if (structured != NULL) {
        fputs(",\"structured_content\":\"", stdout);
        print_padding(strtoul(structured, NULL, 10));
        fputs("\"", stdout);
    }
    fputs("}\n", stdout);
    fflush(stdout);
}

static void answer_question(const char *line) {
    fputs("{\"type\":\"event_intercept_response\",\"id\":\"", stdout);
    print_string(member(line, "id"));
    fputs("\"", stdout);
    if (suffix != NULL) {
        fputs(",\"modified_args\":{\"text\":\"", stdout);
        print_string(member(member(line, "tool_args"), "text"));
        printf("%s\"}", suffix);
    }
    fputs("}\n", stdout);
    fflush(stdout);
}

static void take_event(const char *line) {
    const char *step = member(line, "step");
    if (!is_string(member(line, "event"), observed) || step == NULL)
        return; /* something else, of which nobody was told to count the steps */
    long now = strtol(step, NULL, 10);
    events++;
    disordered += now <= last;
    last = now;
    unacknowledged++;
}

static void acknowledge(void) {
    static char bytes[512];
    while (unacknowledged > 0) {
        size_t some = unacknowledged < (long)sizeof bytes ? (size_t)unacknowledged : sizeof bytes;
        ssize_t written = write(ack_fd, bytes, some);
        if (written < 0)
            exit(1);
        unacknowledged -= written;
    }
}

static int open_or_exit(const char *path, int flags) {
    int fd = open(path, flags | O_CLOEXEC);
    if (fd < 0) {
        perror(path);
        exit(1);
    }
    return fd;
}

static void read_options(int argc, char **argv) {
    int option;
    while ((option = getopt(argc, argv, "t:e:i:r:a:d:")) != -1)
        switch (option) {
        case 't': tool = optarg; break;
        case 'e': observed = optarg; break;
        case 'i': intercepted = optarg; break;
        case 'r': suffix = optarg; break;
        case 'a': acks = optarg; break;
        case 'd': deaf = optarg; break;
        default: exit(2);
        }
}

int main(int argc, char **argv) {
    struct lines in = {0};
    char *line;
    read_options(argc, argv);
    if (acks != NULL)
        ack_fd = open_or_exit(acks, O_WRONLY);
    introduce();
    if (deaf != NULL)
        close(open_or_exit(deaf, O_RDONLY));
    while ((line = next_line(&in)) != NULL) {
        const char *type = member(line, "type");
        if (is_string(type, "tool_call"))
            answer_call(line);
        else if (is_string(type, "event_intercept"))
            answer_question(line);
        else if (is_string(type, "event") && observed != NULL)
            take_event(line);
        else if (is_string(type, "shutdown"))
            break;
        if (ack_fd >= 0 && !has_line(&in))
            acknowledge();
    }
    return 0;
}
