"""A guard in the jsonrpc dialect: it is asked before every tool call, and an error is a refusal."""

import json
import sys
from typing import Any


def send(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params", {})
    if method == "initialize":
        send(method="register/interceptor", params={"name": "guard"})
        send(id=message["id"], result={"name": "guard", "version": "1.0.0"})
    elif method == "interceptor/before" and params["args"].get("city") == "Atlantis":
        send(id=message["id"], error={"code": -32603, "message": "Atlantis has sunk: do not ask about it"})
    elif method == "interceptor/before":
        send(id=message["id"], result={"allow": True})
    elif method == "interceptor/after":
        send(id=message["id"], result={})
    elif "id" in message:
        send(id=message["id"], error={"code": -32601, "message": f"unknown method {method}"})
