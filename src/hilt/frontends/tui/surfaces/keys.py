"""Names of keys: what the terminal calls them, what a panel's owner is told, and how an extension may have written one.

Owns the names alone. What a key does is decided where it is pressed.
"""

from collections.abc import Iterable
from typing import TypeAlias

PanelKey: TypeAlias = tuple[str, str]
"""The name of a key, and the character when that is `rune`."""

_PANEL = frozenset(
    {"up", "down", "left", "right", "enter", "tab", "backspace", "delete", "home", "end", "pageup", "pagedown"}
)
_MODIFIERS = ("ctrl", "alt", "shift", "super", "hyper", "meta")
_ALSO = {
    "control": "ctrl",
    "ctl": "ctrl",
    "option": "alt",
    "opt": "alt",
    "meta": "alt",
    "cmd": "super",
    "command": "super",
    "esc": "escape",
    "return": "enter",
    "del": "delete",
    "pgup": "pageup",
    "page_up": "pageup",
    "pgdn": "pagedown",
    "pgdown": "pagedown",
    "page_down": "pagedown",
    "ins": "insert",
    " ": "space",
}
_SAME = {
    "ctrl+i": "tab",
    "ctrl+m": "enter",
    "ctrl+[": "escape",
    "ctrl+left_square_bracket": "escape",
    "ctrl+h": "backspace",
    "ctrl+@": "ctrl+space",
    "ctrl+_": "ctrl+underscore",
    "ctrl+\\": "ctrl+backslash",
    "ctrl+]": "ctrl+right_square_bracket",
    "ctrl+^": "ctrl+circumflex_accent",
    "ctrl+/": "ctrl+underscore",
}
"""What a terminal sends for both."""


def panel_key(key: str, character: str | None) -> PanelKey:
    """What the owner of a panel is told of a key. Modifiers are not told: Alt-x is `x`, Alt-Left is `left`."""
    if character and character.isprintable() and not key.startswith("ctrl+"):
        return "rune", character
    bare = key.removeprefix("alt+")
    if bare != key and len(bare) == 1:
        return "rune", bare
    if bare == "space":
        return "rune", " "
    return (bare if bare in _PANEL else "unknown"), ""


def normal(key: str) -> str:
    """One spelling for a key, however it is written: `Ctrl-G`, `control+g` and `ctrl+g` are one."""
    text = key.lower().strip() or key
    if len(text) < 2:
        return _ALSO.get(text, text)
    if text[-1] in "+-":
        text = text[:-1] + {"-": "minus", "+": "plus"}[text[-1]]
    *before, last = [part.strip() for part in text.replace("-", "+").split("+")]
    held = {_ALSO.get(part, part) for part in before}
    last = _ALSO.get(last, last)
    spelt = "+".join([*[one for one in _MODIFIERS if one in held], *sorted(held - {*_MODIFIERS}), last])
    return _SAME.get(spelt, spelt)


def types(key: str) -> bool:
    """Whether it writes something: then it belongs to the input."""
    spelt = normal(key)
    return len(spelt) == 1 or spelt == "space" or (spelt.startswith("shift+") and len(spelt) == len("shift+x"))


OURS = frozenset(
    map(
        normal,
        (
            *("enter", "shift+enter", "alt+enter", "ctrl+j", "tab", "shift+tab", "escape", "backspace", "delete"),
            *("up", "down", "left", "right", "home", "end", "pageup", "pagedown", "ctrl+home", "ctrl+end"),
            *("ctrl+a", "ctrl+c", "ctrl+d", "ctrl+e", "ctrl+k", "ctrl+l", "ctrl+n", "ctrl+o", "ctrl+u", "ctrl+w"),
            *("ctrl+z", "ctrl+left", "ctrl+right", "alt+left", "alt+right", "alt+b", "alt+f", "alt+backspace", "f6"),
        ),
    )
)
"""Keys of hilt's that no extension can have. There are more: whatever has a binding."""


def ours(key: str, bound: Iterable[str] = ()) -> bool:
    """Whether a key is hilt's own; `bound` are those that have a binding."""
    spelt = normal(key)
    return types(spelt) or spelt in OURS or spelt in {normal(one) for one in bound}
