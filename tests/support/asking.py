"""Three who ask the host of a real `hilt rpc` for something: the client itself, and an extension of either dialect.

The extensions are programs without an SDK. Each has a tool `ask` that puts a question to the host and returns what it
was told; the client calls that tool, through the host as well.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from support.hilt_process import Hilt, Rpc

WAYS = ("client", "jsonrpc", "frames")

_JSONRPC = """
import json, os, sys
source, sink = os.fdopen(3, "rb"), os.fdopen(4, "wb", 0)
def send(**message):
    sink.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\\n")
calls = {}
for line in source:
    said = json.loads(line)
    method, params, number = said.get("method"), said.get("params"), said.get("id")
    if method == "initialize":
        send(method="register/tool", params={"name": "ask", "description": "Asks.", "parameters": {"type": "object"}})
        send(method="register/shortcut", params={"key": "ctrl+g", "description": "Goes."})
        send(method="register/promptSection", params={"title": "Ours", "content": "Be kind.", "tokenHint": 7})
        send(id=number, result={"name": "asker", "version": "1"})
    elif method == "tool/execute":
        calls[number + 1000] = number
        send(id=number + 1000, method=params["args"]["method"], params=params["args"]["params"])
    elif method == "eventBus/event":
        with open("heard", "a") as file:
            file.write(json.dumps(params["data"]) + "\\n")
    elif method is None and number in calls:
        text = json.dumps({key: said[key] for key in ("result", "error") if key in said})
        send(id=calls.pop(number), result={"content": [{"type": "text", "text": text}]})
"""

_FRAMES = """
import json, sys
def send(**frame):
    print(json.dumps(frame), flush=True)
send(type="hello", name="asker", version="1")
send(type="register_tool", name="ask", description="Asks.", schema={"type": "object"})
send(type="register", kind="shortcut", key="ctrl+g", description="Goes.")
send(type="register", kind="prompt_section", title="Ours", content="Be kind.")
send(type="ready")
for line in sys.stdin:
    said = json.loads(line)
    if said["type"] == "tool_call":
        send(type="host_request", id=said["id"], method=said["args"]["method"], params=said["args"]["params"])
    elif said["type"] == "host_response":
        text = json.dumps({key: said[key] for key in ("result", "error") if key in said})
        send(type="tool_result", id=said["id"], content=[{"type": "text", "text": text}])
    elif said["type"] == "ext_notify":
        with open("heard", "a") as file:
            file.write(json.dumps(said["params"]["data"]) + "\\n")
    elif said["type"] == "shutdown":
        break
"""


class Fault(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Desk:
    """A running hilt, and one of the three who asks it."""

    def __init__(self, hilt: Hilt, rpc: Rpc, way: str, home: Path) -> None:
        self.hilt = hilt
        self.rpc = rpc
        self.way = way
        self.home = home
        """Where the extension lies."""
        self._ids = count(1)

    def ask(self, method: str, **params: Any) -> Any:
        """The result. Raises `Fault`."""
        return self.told(self.begin(method, **params))

    def begin(self, method: str, **params: Any) -> str:
        """Ask, and do not wait."""
        id_ = f"q{next(self._ids)}"
        wanted = {"method": f"host/{method}", "params": params}
        if self.way == "client":
            self.rpc.send(type="host", id=id_, **wanted)
        else:
            call = {"name": "ask", "args": wanted}
            self.rpc.send(type="host", id=id_, method="host/executeTool", params=call)
        return id_

    def told(self, id_: str) -> Any:
        response = self.rpc.response("host", id=id_)
        if self.way == "client":
            if not response["success"]:
                raise Fault(response["code"], response["error"])
            return response["data"]
        assert response["success"], response
        said = json.loads(response["data"]["content"][0]["text"])
        if error := said.get("error"):
            raise Fault(error["code"], error["message"])
        return said["result"]

    def heard(self) -> list[Any]:
        """What was published to it."""
        if self.way == "client":
            return [line["data"] for line in self.rpc.lines if line["type"] == "bus_event"]
        file = self.home / "heard"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@contextmanager
def desk(
    folder: Path, way: str, *turns: dict[str, Any], config: str = "", by_hand: bool = False, **environment: str
) -> Iterator[Desk]:
    """`by_hand`: the extension was put among the user's own, and nobody was asked about it."""
    hilt = Hilt(folder, **environment)
    hilt.home.mkdir()
    if config:
        (hilt.home / "config.toml").write_text(config)
    extension = (hilt.home / "extensions" if by_hand else folder) / "asker"
    extension.mkdir(parents=True)
    if way == "jsonrpc":
        (extension / "manifest.yaml").write_text("name: asker\nversion: '1'\nruntime: python\nentry: main.py\n")
        (extension / "main.py").write_text(_JSONRPC)
    else:
        (extension / "extension.json").write_text(
            json.dumps({"name": "asker", "version": "1", "exec": "python3", "args": ["main.py"]})
        )
        (extension / "main.py").write_text(_FRAMES)
    named = () if by_hand else ("--ext", str(extension))
    with hilt.rpc(*hilt.script(*turns), *named, "--permissions", "yolo") as rpc:
        it = Desk(hilt, rpc, way, extension)
        rpc.event("ext_status", extension="asker", state="ready")
        yield it
