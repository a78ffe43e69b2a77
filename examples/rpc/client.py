"""Ask hilt one thing from Python: python3 client.py "PROMPT" [flags for hilt rpc…]"""

import json
import os
import sys
from subprocess import PIPE, Popen

hilt = Popen([os.environ.get("HILT", "hilt"), "rpc", *sys.argv[2:]], stdin=PIPE, stdout=PIPE, encoding="utf-8")


def send(**command):
    print(json.dumps(command), file=hilt.stdin, flush=True)


if token := os.environ.get("HILT_RPC_TOKEN"):
    send(type="hello", token=token)
send(type="prompt", message=sys.argv[1])
stop = "error"  # until `done` says otherwise
for line in hilt.stdout:
    match json.loads(line):
        case {"type": "text_delta", "delta": delta}:
            print(delta, end="", flush=True)
        case {"type": "ui_request", "id": id_}:
            send(type="ui_response", id=id_, approved=False, reason="this client allows nothing")
        case {"type": "error", "message": message} | {"success": False, "error": message}:
            print(f"error: {message}", file=sys.stderr)
            break
        case {"type": "done", "stop": stop}:
            print()
            break
hilt.communicate()  # ends its input, which ends hilt, and reads what is left
sys.exit(stop != "end")
