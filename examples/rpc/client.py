"""Ask hilt one thing from Python: python3 client.py "PROMPT" [flags for hilt rpc…]"""

import json
import os
import subprocess
import sys

hilt = subprocess.Popen(
    [os.environ.get("HILT", "hilt"), "rpc", *sys.argv[2:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE
)


def send(**command):
    hilt.stdin.write(json.dumps(command).encode() + b"\n")
    hilt.stdin.flush()


def allowed(request):
    """Ask the person at the terminal; without one the answer is no."""
    try:
        with open("/dev/tty", "r+b", buffering=0) as terminal:
            terminal.write(f"\n{request['title']}\n{request['preview']['text']}\n[y/N] ".encode())
            return terminal.readline().strip().lower() == b"y"
    except OSError:
        return False


if token := os.environ.get("HILT_RPC_TOKEN"):
    send(type="hello", token=token)
send(type="prompt", id="1", message=sys.argv[1])
failed = True  # until `done` says otherwise
for line in hilt.stdout:
    match json.loads(line):
        case {"type": "text_delta", "delta": delta}:
            print(delta, end="", flush=True)
        case {"type": "ui_request", "kind": "confirm", "id": id_} as request:
            send(type="ui_response", id=id_, approved=allowed(request), reason="the user said no")
        case {"type": "error", "message": message} | {"type": "response", "success": False, "error": message}:
            print(f"error: {message}", file=sys.stderr)
            break
        case {"type": "done", "stop": stop}:
            print()
            failed = stop != "end"
            break
hilt.stdin.close()
hilt.wait()
sys.exit(failed)
