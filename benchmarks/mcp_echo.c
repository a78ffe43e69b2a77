/* A server of the Model Context Protocol with one tool, `echo`, over stdin and stdout. */
#include "lines.h"

/* The id as it came: a number or a string. */
static void begin(const char *id) {
    size_t size = *id == '"' ? (size_t)(closing_quote(id + 1) - id) + 1 : strcspn(id, ",} ");
    fputs("{\"jsonrpc\":\"2.0\",\"id\":", stdout);
    fwrite(id, 1, size, stdout);
}

int main(void) {
    struct lines in = {0};
    char *line;
    while ((line = next_line(&in)) != NULL) {
        const char *id = member(line, "id"), *method = member(line, "method"), *params = member(line, "params");
        if (id == NULL || method == NULL)
            continue; /* a notification, or an answer to a question nobody asked */
        begin(id);
        if (is_string(method, "initialize")) {
            fputs(",\"result\":{\"protocolVersion\":\"", stdout);
            print_string(member(params, "protocolVersion"));
            fputs("\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"echo\",\"version\":\"1\"}}}\n", stdout);
        } else if (is_string(method, "tools/list")) {
            fputs(",\"result\":{\"tools\":[{\"name\":\"echo\",\"description\":\"echo\",\"inputSchema\":{\"type\":\"object\","
                  "\"properties\":{\"text\":{\"type\":\"string\"}}}}]}}\n", stdout);
        } else if (is_string(method, "tools/call")) {
            fputs(",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"", stdout);
            print_string(member(member(params, "arguments"), "text"));
            fputs("\"}],\"isError\":false}}\n", stdout);
        } else if (is_string(method, "ping")) {
            fputs(",\"result\":{}}\n", stdout);
        } else {
            fputs(",\"error\":{\"code\":-32601,\"message\":\"unknown method\"}}\n", stdout);
        }
        fflush(stdout);
    }
    return 0;
}
