/* An extension of the jsonrpc dialect that does next to nothing, so that what is measured is the host.
 *
 *   jsonrpc_echo [-t TOOL] [-p API] [-n DELTAS]
 *
 * -t  the name of its tool: {"text": T} answers T
 * -p  provide the models of this API: every answer comes in -n deltas, each of them one word
 */
#include "lines.h"

static const char *tool = "echo", *api;
static long deltas = 10000;

static void introduce(const char *id) {
    printf("{\"jsonrpc\":\"2.0\",\"method\":\"register/tool\",\"params\":{\"name\":\"%s\",\"description\":\"echo\","
           "\"parameters\":{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}}}}}\n", tool);
    if (api != NULL)
        printf("{\"jsonrpc\":\"2.0\",\"method\":\"register/provider\",\"params\":{\"api\":\"%s\"}}\n", api);
    printf("{\"jsonrpc\":\"2.0\",\"id\":%ld,\"result\":{\"name\":\"%s\",\"version\":\"1\"}}\n",
           strtol(id, NULL, 10), tool);
    fflush(stdout);
}

static void answer_call(long id, const char *params) {
    printf("{\"jsonrpc\":\"2.0\",\"id\":%ld,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"", id);
    print_string(member(member(params, "args"), "text"));
    fputs("\"}],\"isError\":false}}\n", stdout);
    fflush(stdout);
}

static void answer_stream(long id, const char *params) {
    long request = strtol(member(params, "requestId"), NULL, 10);
    for (long count = 0; count < deltas; count++)
        printf("{\"jsonrpc\":\"2.0\",\"method\":\"provider/delta\",\"params\":{\"requestId\":%ld,"
               "\"type\":\"text_delta\",\"delta\":\"word \"}}\n", request);
    printf("{\"jsonrpc\":\"2.0\",\"id\":%ld,\"result\":{\"message\":{\"content\":[{\"text\":\"all of it\"}],"
           "\"model\":\"m\",\"provider\":\"p\",\"stopReason\":\"stop\"}}}\n", id);
    fflush(stdout);
}

int main(int argc, char **argv) {
    struct lines in = {.fd = 3};
    char *line;
    int option;
    while ((option = getopt(argc, argv, "t:p:n:")) != -1)
        switch (option) {
        case 't': tool = optarg; break;
        case 'p': api = optarg; break;
        case 'n': deltas = strtol(optarg, NULL, 10); break;
        default: exit(2);
        }
    if (getenv("PIGLET_FD") == NULL || dup2(4, 1) < 0)
        exit(3);
    while ((line = next_line(&in)) != NULL) {
        const char *method = member(line, "method"), *id = member(line, "id"), *params = member(line, "params");
        if (is_string(method, "initialize"))
            introduce(id);
        else if (is_string(method, "tool/execute"))
            answer_call(strtol(id, NULL, 10), params);
        else if (is_string(method, "provider/stream"))
            answer_stream(strtol(id, NULL, 10), params);
        else if (is_string(method, "shutdown"))
            break;
    }
    return 0;
}
