"""Real extensions of either dialect that offer providers, hooks, compactors and the like, each a few lines of a test.

def answer(ask: Ask) -> Any:
    ask.say("hel")
    return ask.message({"text": "hello"})

made = offering("p", ("provider", {"api": "mine"}), answers={"provider/stream": answer})

The function goes to the program as text: it uses what it is given, and what is in `support.offerer`, and nothing else.
"""

import inspect
import json
import shlex
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hilt.model.extensions import Dialect
from support import extending
from support.extending import Made
from support.offerer import Answer, Message

PROGRAM = Path(__file__).with_name("offerer.py")


def offering(
    name: str,
    *offers: tuple[str, Message],
    answers: Mapping[str, Answer] | None = None,
    given: Any = None,
    dialect: Dialect | None = None,
    **manifest: Any,
) -> Made:
    """An extension that registers these and answers so; what is not said is answered as harmlessly as can be.

    `given` is what the functions need of the test, as `ask.given`.
    """
    functions = {method: answer.__name__ for method, answer in (answers or {}).items()}
    sources = {answer.__name__: textwrap.dedent(inspect.getsource(answer)) for answer in (answers or {}).values()}
    table = ", ".join(f"{method!r}: {function}" for method, function in functions.items())
    serving = f"serve({name!r}, {list(offers)!r}, {{{table}}}, {given!r})\n"
    files = {
        "main.py": "\n\n".join(["from offerer import *", *sources.values(), serving]),
        "offerer.py": PROGRAM.read_text(),
    }
    argv = [sys.executable, "-E", "-S", "main.py"]
    if (dialect or extending.SPOKEN) == "frames":
        return Made(name, {"exec": argv[0], "args": argv[1:], **manifest}, files)
    # Here a manifest has no place for arguments.
    files["run.sh"] = f"exec {shlex.join(argv)}\n"
    return Made(name, {"runtime": "/bin/sh", "entry": "run.sh", "pipes": "fd", **manifest}, files, "jsonrpc")


def heard(directory: Path, method: str = "") -> list[Message]:
    """What the extension there was asked and told so far: `at`, `method`, `id`, `params`."""
    file = directory / "heard.jsonl"
    lines = file.read_text().splitlines(keepends=True) if file.exists() else []
    messages: list[Message] = [json.loads(line) for line in lines if line.endswith("\n")]
    return [message for message in messages if method in ("", message["method"])]
