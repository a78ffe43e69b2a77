#!/bin/sh
# Ask hilt one thing from a shell: sh client.sh "PROMPT" [flags for hilt rpc…]. Needs jq.
prompt=$1
shift
pipes=$(mktemp -d)
trap 'rm -rf "$pipes"' EXIT
mkfifo "$pipes/in" "$pipes/out"
"${HILT:-hilt}" rpc "$@" <"$pipes/in" >"$pipes/out" &
exec 3>"$pipes/in" 4<"$pipes/out"

send() { jq -nc "$@" >&3; }
field() { printf '%s\n' "$line" | jq -rj "$1 // empty"; }

[ -z "$HILT_RPC_TOKEN" ] || send --arg token "$HILT_RPC_TOKEN" '{type: "hello", $token}'
send --arg message "$prompt" '{type: "prompt", $message}'
code=1 # until `done` says otherwise
while IFS= read -r line <&4; do
    case $(field 'if .success == false then "error" else .type end') in
    text_delta) field .delta ;;
    ui_request)
        send --arg id "$(field .id)" \
            '{type: "ui_response", $id, approved: false, reason: "this client allows nothing"}'
        ;;
    error) echo "error: $(field '.message // .error')" >&2 && break ;;
    done) echo && [ "$(field .stop)" = end ] && code=0; break ;;
    esac
done
exec 3>&- # the end of its input is the end of hilt
cat <&4 >/dev/null
wait
exit $code
