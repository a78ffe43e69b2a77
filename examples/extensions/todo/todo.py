"""A list of things to do in a panel, kept in a file. The model can add to it, too."""

import json
from pathlib import Path

from hilt_sdk import Extension, Panel

ext = Extension("todo", "1.0.0")


def items() -> list[dict]:
    place = Path(ext.data_dir, "todo.json")
    return json.loads(place.read_text()) if place.exists() else []


def keep(entries: list[dict]) -> None:
    place = Path(ext.data_dir, "todo.json")
    written = place.with_suffix(".new")
    written.write_text(json.dumps(entries))
    written.replace(place)  # nobody ever reads half a file
    panel.update()


class Todo(Panel):
    title = "To do"
    footer = "up/down choose · space done · d delete · type and Enter to add · Esc closes"

    def __init__(self) -> None:
        self.at = 0
        self.typed = ""

    def render(self, width: int, height: int) -> list[str]:
        rows = [
            f"{'>' if i == self.at else ' '} [{'x' if one['done'] else ' '}] {one['text']}"
            for i, one in enumerate(items())
        ]
        return [*(rows or ["nothing to do"]), "", f"new: {self.typed}"]

    def on_key(self, key: str, text: str) -> None:
        entries = items()
        here = entries[self.at : self.at + 1]
        if key in ("up", "down"):
            self.at = max(0, min(len(entries) - 1, self.at + (1 if key == "down" else -1)))
        elif key == "enter" and self.typed:
            keep([*entries, {"text": self.typed, "done": False}])
            self.typed = ""
        elif key == "backspace":
            self.typed = self.typed[:-1]
        elif key == "rune" and not self.typed and text == " " and here:
            here[0]["done"] = not here[0]["done"]
            keep(entries)
        elif key == "rune" and not self.typed and text == "d" and here:
            keep([one for one in entries if one is not here[0]])
            self.at = max(0, self.at - 1)
        elif key == "rune":
            self.typed += text


panel = Todo()


@ext.command("todo", "open the list of things to do, or add to it")
def todo(args: str) -> Panel | str:
    if not args:
        return panel
    keep([*items(), {"text": args, "done": False}])
    return f"added: {args}"


@ext.tool
def todo_add(text: str) -> str:
    """Put something on the user's list of things to do."""
    keep([*items(), {"text": text, "done": False}])
    return f"added; {len(items())} on the list"


if __name__ == "__main__":
    ext.run()
