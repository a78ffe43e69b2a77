"""What a docstring says: about the function as a whole, and about each parameter.

Google's `Args:` and reST's `:param name:` are understood; what is neither belongs to the whole.
"""

from __future__ import annotations

_ARGS = frozenset(("args:", "arguments:", "parameters:", "params:"))
_OTHERS = frozenset(("returns:", "return:", "raises:", "yields:"))


def described(docstring: str | None) -> tuple[str, dict[str, str]]:
    """The description for the model, and those of the parameters by name."""
    if not docstring:
        return "", {}
    if "\n" not in docstring and not docstring.startswith(":"):
        return docstring.strip(), {}
    whole: list[str] = []
    found: dict[str, str] = {}
    section = margin = -1  # how far the section's heading and its entries are indented; -1 is none
    wanted = False
    name = ""
    for line in _dedented(docstring):
        text = line.strip()
        depth = len(line) - len(line.lstrip())
        if text.lower() in _ARGS or text.lower() in _OTHERS:
            section, margin, wanted, name = depth, -1, text.lower() in _ARGS, ""
        elif text.startswith(":") and text.count(":") > 1:
            section, margin, wanted, name = depth, -1, False, _field(text, found)
        elif not text:
            if section < 0:
                whole.append(line)
        elif section >= 0 and depth > section:
            margin = depth if margin < 0 else margin
            name = _entry(text, found, name, begins=wanted and depth == margin)
        else:
            section, name = -1, ""
            whole.append(line)
    return "\n".join(whole).strip(), {key: said.strip() for key, said in found.items() if said.strip()}


def _dedented(docstring: str) -> list[str]:
    first, *others = docstring.expandtabs().split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in others if line.strip()), default=0)
    return [first.strip(), *(line[margin:].rstrip() for line in others)]


def _field(text: str, found: dict[str, str]) -> str:
    """`:param int days: how many`: the name, which later lines belong to; empty for other fields."""
    field, _, said = text[1:].partition(":")
    if not field.startswith("param "):
        return ""
    name = field.split()[-1]
    found[name] = said
    return name


def _entry(text: str, found: dict[str, str], name: str, *, begins: bool) -> str:
    """`days (int): how many`, or more about the one before."""
    head, colon, said = text.partition(":")
    word = head.split("(")[0].strip().lstrip("*")
    if begins and colon and word.isidentifier():
        found[word] = said
        return word
    if name:
        found[name] += " " + text
    return name
