"""An extension that offers whatever it is told to, in either dialect; `support.offering` writes what it does.

Standard library only. All that is heard goes to `heard.jsonl` beside it, and what it is asked is answered by a
function, in a thread of its own. Everything has the names it has in the jsonrpc dialect, which it speaks with
`PIGLET_FD=1`.
"""

import json
import os
import re
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PATIENCE = 30.0
"""Seconds; bounds every wait, and what a failed test leaves behind."""
SILENT = object()
"""Given as an answer, there is none."""
_USUAL: dict[str, Any] = {
    "tool/execute": {"content": [{"type": "text", "text": "ok"}]},
    "interceptor/before": {"allow": True},
}

Message = dict[str, Any]


class Refused(Exception):
    """Raised by a function, the answer is an error; raised by `Ask.host`, the host's was."""


class Ask:
    """One question of the host."""

    def __init__(self, program: "Program", id_: Any, method: str, params: Message, number: int) -> None:
        self._program = program
        self.id = id_
        self.method = method
        self.params = params
        self.number = number
        """How many questions with this method came before, in this process."""
        self.life = program.life
        """How many processes of this extension there were before."""
        self.given = program.given
        self.cancelled = threading.Event()

    def say(self, text: str = "", kind: str = "text", **more: Any) -> None:
        """A piece of the answer that `provider/stream` asks for."""
        self.tell(
            "provider/delta", requestId=self.params["requestId"], **{"type": f"{kind}_delta", "delta": text, **more}
        )

    def message(self, *content: Message, stop: str = "stop", **more: Any) -> Message:
        """The whole of it."""
        said = {"content": list(content), "model": self.params["model"]["id"], "provider": "p", "stopReason": stop}
        return {"message": {**said, **more}}

    def tell(self, method: str, /, **params: Any) -> None:
        self._program.tell(method, params)

    def host(self, method: str, /, **params: Any) -> Any:
        """What the host answers. Raises `Refused`."""
        return self._program.ask(f"host/{method}", params)

    def touch(self, name: str) -> None:
        (HERE / name).touch()

    def wait_for(self, name: str) -> None:
        end = time.monotonic() + PATIENCE
        while not (HERE / name).exists():
            if self.cancelled.wait(0.005) or time.monotonic() > end:
                raise Refused(f"{name} never came")

    def wait_for_cancel(self) -> None:
        if self.cancelled.wait(PATIENCE):
            self.touch("cancelled")

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


Answer = Callable[[Ask], Any]


class Program:
    def __init__(self, name: str, offers: list[tuple[str, Message]], answers: dict[str, Answer], given: Any) -> None:
        self.name = name
        self.offers = offers
        self.answers = answers
        self.given = given
        self.native = os.environ.get("PIGLET_FD") == "1"
        self.source = os.fdopen(3 if self.native else 0, "rb")
        self.sink = 4 if self.native else 1
        lives = HERE / "lives"
        self.life = int(lives.read_text()) if lives.exists() else 0
        lives.write_text(str(self.life + 1))
        self._record = (HERE / "heard.jsonl").open("a", buffering=1)
        self._writing = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._open: dict[Any, Ask] = {}
        self._asked: dict[Any, tuple[threading.Event, list[Message]]] = {}
        self._numbers = 0

    def run(self) -> None:
        if not self.native:
            self.write({"type": "hello", "name": self.name, "version": "1"})
            self.register()
            self.write({"type": "ready"})
        for line in self.source:
            said = json.loads(line)
            if self.native:
                self.hear(said.get("id"), said.get("method"), said.get("params"), said)
            elif said["type"] == "shutdown":
                break
            else:
                self.hear(*_translated(said), said)

    def register(self) -> None:
        for kind, fields in self.offers:
            if self.native:
                self.tell(f"register/{kind}", fields)
            elif kind in ("tool", "command"):
                fields = {"schema" if name == "parameters" else name: value for name, value in fields.items()}
                self.write({"type": f"register_{kind}", **fields})
            else:
                snake = re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", kind)
                self.write({"type": "register", "kind": snake, **fields})

    def hear(self, id_: Any, method: str | None, params: Any, said: Message) -> None:
        if method is None:
            done, answers = self._asked.pop(id_, (threading.Event(), []))
            answers.append(said)
            done.set()
            return
        self._record.write(json.dumps({"at": time.monotonic(), "method": method, "id": id_, "params": params}) + "\n")
        if method == "initialize":
            self.register()
            self.write({"jsonrpc": "2.0", "id": id_, "result": {"name": self.name, "version": "1"}})
        elif method == "$/cancelRequest":
            if ask := self._open.get(params["id"]):
                ask.cancelled.set()
        elif id_ is not None:
            ask = self._open[id_] = Ask(self, id_, method, params, self._counts[method])
            self._counts[method] += 1
            threading.Thread(target=self._answer, args=(ask, said), daemon=True).start()

    def _answer(self, ask: Ask, said: Message) -> None:
        try:
            result = self.answers[ask.method](ask) if ask.method in self.answers else _USUAL.get(ask.method, {})
        except Refused as error:
            self.reply(ask, said, None, {"code": -32603, "message": str(error)})
        else:
            if result is not SILENT:
                self.reply(ask, said, result or {}, None)
        self._open.pop(ask.id, None)

    def reply(self, ask: Ask, said: Message, result: Any, error: Message | None) -> None:
        outcome = {"error": error} if error else {"result": result}
        if self.native:
            self.write({"jsonrpc": "2.0", "id": ask.id, **outcome})
            return
        plain = result or {}
        failed = error["message"] if error else ""
        match said["type"]:
            case "tool_call":
                content = [{"type": "text", "text": failed}] if error else plain["content"]
                failing = bool(error) or plain.get("isError", False)
                self.write({"type": "tool_result", "id": ask.id, "content": content, "is_error": failing})
            case "command_invoked" | "shortcut_invoked":
                shown = {"action": "noop", **plain}
                self.write({"type": "command_response", "id": ask.id, **({"error": failed} if error else shown)})
            case _:
                self.write({"type": "ext_response", "id": ask.id, **outcome})

    def tell(self, method: str, params: Message) -> None:
        if self.native:
            self.write({"jsonrpc": "2.0", "method": method, "params": params})
        else:
            self.write({"type": "host_notify", "method": method, "params": params})

    def ask(self, method: str, params: Message) -> Any:
        done, answers = threading.Event(), list[Message]()
        with self._writing:
            self._numbers += 1
            number: Any = self._numbers if self.native else f"q{self._numbers}"
        self._asked[number] = (done, answers)
        kind = {"jsonrpc": "2.0"} if self.native else {"type": "host_request"}
        self.write({**kind, "id": number, "method": method, "params": params})
        if not done.wait(PATIENCE):
            raise Refused(f"{method}: no answer")
        if error := answers[0].get("error"):
            raise Refused(error["message"])
        return answers[0]["result"]

    def write(self, *messages: Message) -> None:
        data = b"".join(json.dumps(message).encode() + b"\n" for message in messages)
        with self._writing:
            while data:
                data = data[os.write(self.sink, data) :]


def _translated(frame: Message) -> tuple[Any, str | None, Any]:
    """What a frame is in the other dialect: id, method, params."""
    match frame["type"]:
        case "ext_request":
            return frame["id"], frame["method"], frame["params"]
        case "tool_call":
            return frame["id"], "tool/execute", {"callId": frame["id"], "name": frame["name"], "args": frame["args"]}
        case "command_invoked":
            return frame["id"], "command/execute", {"name": frame["name"], "args": frame.get("args", "")}
        case "shortcut_invoked":
            return frame["id"], "shortcut/handle", {"key": frame["key"]}
        case "host_response":
            return frame["id"], None, None
        case "ext_notify":
            return None, frame["method"], frame["params"]
        case kind:
            return None, kind, frame


def serve(name: str, offers: Iterable[Any], answers: dict[str, Answer], given: Any) -> None:
    """Until the host hangs up."""
    Program(name, [(kind, fields) for kind, fields in offers], answers, given).run()
    sys.stdout.flush()
    os._exit(0)
