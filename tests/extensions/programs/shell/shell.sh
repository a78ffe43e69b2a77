#!/bin/sh
# Frames come one a line, compact, with "type" first and "id" second: enough to match them as text.

say() { printf '%s\n' "$1"; }

# The string behind a key, still escaped as JSON wants it, so that it can go straight back into a frame.
value() { printf '%s\n' "$line" | sed -nE 's/.*"'"$1"'":"(([^"\\]|\\.)*)".*/\1/p'; }

say '{"type":"hello","name":"shell","version":"0.1.0","capabilities":["commands","tools","events"]}'
say '{"type":"register_command","name":"hail","description":"hail somebody"}'
say '{"type":"register_tool","name":"greet","description":"Greet somebody by name.","schema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}'
say '{"type":"subscribe","intercept":["tool_call"]}'
say '{"type":"ready"}'

while IFS= read -r line; do
    id=$(printf '%s\n' "$line" | sed -nE 's/^\{"type":"[a-z_]*","id":"([^"]*)".*/\1/p')
    case $line in
    *'"type":"command_invoked"'*)
        who=$(value args)
        say '{"type":"command_response","id":"'"$id"'","action":"display","display":"hail, '"${who:-whoever you are}"'"}'
        ;;
    *'"type":"tool_call"'*)
        # The tool has a name too, so look for the one in its arguments.
        line=${line#*'"args":'}
        say '{"type":"tool_result","id":"'"$id"'","content":[{"type":"text","text":"hello, '"$(value name)"'"}]}'
        ;;
    *'"type":"event_intercept"'*'"tool_name":"bash"'*'rm -rf'*)
        say '{"type":"event_intercept_response","id":"'"$id"'","block":true,"reason":"shell says no"}'
        ;;
    *'"type":"event_intercept"'*'"tool_name":"bash"'*'ls -la'*)
        say '{"type":"event_intercept_response","id":"'"$id"'","modified_args":{"command":"echo GUARDED"}}'
        ;;
    *'"type":"event_intercept"'*)
        say '{"type":"event_intercept_response","id":"'"$id"'"}'
        ;;
    *'"type":"shutdown"'*)
        say '{"type":"shutdown_ack"}'
        exit 0
        ;;
    *)
        echo "not for us: $line" >&2
        ;;
    esac
done
