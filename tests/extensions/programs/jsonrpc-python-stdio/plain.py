"""The least that an extension can be: JSON-RPC on standard input and output, one thing after the other."""

import json
import sys
from typing import Any


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        shape = {"type": "object", "properties": {"words": {"type": "array", "items": {"type": "string"}}}}
        send({"method": "register/tool", "params": {"name": "sort", "description": "sort words", "parameters": shape}})
        send({"method": "register/inputTransformer", "params": {"name": "please"}})
        return {"name": "plain", "version": "0.1.0"}
    if method == "inputTransformer/transform":
        return {"output": params["input"] + ", please", "handled": False}
    if method == "tool/execute":
        print("sorting", file=sys.stderr)
        return {"content": [{"type": "text", "text": " ".join(sorted(params["args"]["words"]))}]}
    return None


for line in sys.stdin:
    heard = json.loads(line)
    if "id" not in heard:
        continue
    result = answer(heard["method"], heard.get("params") or {})
    if result is None:
        send({"id": heard["id"], "error": {"code": -32601, "message": f"unknown method: {heard['method']}"}})
    else:
        send({"id": heard["id"], "result": result})
