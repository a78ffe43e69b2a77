"""An extension of either dialect that shows whatever a test tells it to, and what it has heard of its panels.

async with interface(tmp_path, shower("a")) as face:
    tell(face, "a", "notify", message="hello", level="warn")
    await face.shows("hello")
"""

import json
from typing import Any

from support.extending import Made
from support.interface import Face
from support.offerer import Ask
from support.offering import heard, offering


def _obey(ask: Ask) -> Any:
    wanted = json.loads(ask.params["args"])
    for _ in range(wanted["times"]):
        for method, params in wanted["tell"]:
            ask.tell(method, **params)
    if wanted.get("die"):
        ask.die()
    return wanted["answer"]


def _note(ask: Ask) -> Any:
    ask.tell("notify", message=f"pressed {ask.params['key']}")


def shower(name: str, *shortcuts: str, **manifest: Any) -> Made:
    """With a command of its name, through which it is told what to do."""
    offers = [("command", {"name": name, "description": "shows things", "immediate": True})]
    offers += [("shortcut", {"key": key, "description": "a key"}) for key in shortcuts]
    return offering(name, *offers, answers={"command/execute": _obey, "shortcut/handle": _note}, **manifest)


def tell(face: Face, name: str, method: str, /, **params: Any) -> None:
    """Have it tell the host something."""
    order(face, name, (method, params))


def order(
    face: Face,
    name: str,
    *told: tuple[str, dict[str, Any]],
    times: int = 1,
    die: bool = False,
    answer: dict[str, Any] | None = None,
) -> None:
    """The same with several things, again and again, and then with an answer to the command or its death."""
    face.say(f"/{name} " + json.dumps({"tell": told, "times": times, "die": die, "answer": answer or {}}))


def panel(panel_id: str = "p", *lines: str, title: str = "", footer: str = "") -> tuple[str, dict[str, Any]]:
    return ("panel/open", {"panel_id": panel_id, "title": title, "lines": lines, "footer": footer})


def of_panels(face: Face, name: str) -> list[tuple[Any, ...]]:
    """What it was told of its panels, in order: `(key, panel, name, text)`, `(resize, panel, w, h)`, `(close, …)`."""
    told: list[tuple[Any, ...]] = []
    for one in heard(face.it.folder / "extensions" / name):
        params = one["params"]
        match one["method"]:
            case "panel_key" | "panel/key":
                told.append(("key", params["panel_id"], params["key"], params.get("text", "")))
            case "panel_resize" | "panel/resize":
                told.append(("resize", params["panel_id"], params["width"], params["height"]))
            case "panel_close" | "panel/closed":
                told.append(("close", params["panel_id"]))
    return told


def keys(face: Face, name: str) -> list[str]:
    """The keys of its panels: the character, or the name in brackets."""
    return [text or f"<{key}>" for kind, _, key, text in (one for one in of_panels(face, name) if one[0] == "key")]
