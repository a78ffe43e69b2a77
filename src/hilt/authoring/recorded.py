"""What a trace has of one process, arranged to be played again. Pure."""

from collections import deque
from collections.abc import Collection
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from hilt.authoring.comparing import comparable
from hilt.authoring.exchange import Id, role_of
from hilt.authoring.traces import Numbered
from hilt.authoring.values import Value

Key: TypeAlias = tuple[Literal["question", "answer", "told", "raw"], Any]


class Said(Struct, frozen=True, eq=False):
    """A line of the extension's, then or now."""

    value: Value
    """What counts of it."""
    key: Key
    """Of an answer the id of the question, of everything else what it is. Lines of one key may be the same line."""
    what: str
    """As people call it."""
    line: int = 0
    """Of the trace; 0 for one of now."""
    cut: bool = False
    """The trace has not all of it."""

    def same(self, other: "Said") -> bool:
        return self.key == other.key and self.value == other.value

    @property
    def name(self) -> str:
        """What it is about, if it says so."""
        inner = self.value.get("params", self.value)
        name = inner.get("name") if isinstance(inner, dict) else None
        return name if isinstance(name, str) else ""


class Recorded:
    def __init__(self, lines: list[Numbered], ignored: Collection[str]) -> None:
        self.lines = lines
        self._ignored = ignored
        self._asked: dict[Id, str] = {}
        """What hilt asked, by id."""
        self._answers: dict[bytes, deque[Value]] = {}
        """hilt's answers, by what was asked."""
        open_: dict[Id, bytes] = {}
        for _, line in lines:
            if isinstance(line.frame, dict):
                self._learn(line.frame, open_, by_host=line.direction == "to_extension")

    def _learn(self, frame: Value, open_: dict[Id, bytes], *, by_host: bool) -> None:
        role = role_of(frame)
        if role.id is None:
            return
        if role.part == "question" and by_host:
            name = Said(frame, ("question", ""), "").name
            self._asked[role.id] = f"{role.what} {name}".rstrip()
        elif role.part == "question":
            open_[role.id] = self._form(frame)
        elif by_host and (form := open_.pop(role.id, None)):
            self._answers.setdefault(form, deque()).append(frame)

    @property
    def opening(self) -> Value:
        """What hilt said first."""
        frames = (line.frame for _, line in self.lines if line.direction == "to_extension")
        return next((frame for frame in frames if isinstance(frame, dict)), {})

    @property
    def exit_code(self) -> int | None:
        """With which it ended; None when it did not, or was ended."""
        for _, line in self.lines:
            if line.direction == "lifecycle" and isinstance(line.frame, dict) and line.frame.get("type") == "exit":
                code = line.frame.get("code")
                return code if isinstance(code, int) else None
        return None

    def answer(self, question: Value) -> Value | None:
        """What hilt answered to this; the last answer stays for whoever asks once more."""
        answers = self._answers.get(self._form(question))
        if not answers:
            return None
        return answers.popleft() if len(answers) > 1 else answers[0]

    def said(self, value: Value, line: int = 0, *, cut: bool = False) -> Said:
        """A line of the extension's, as it is compared."""
        role = role_of(value)
        counts = comparable(value, self._ignored)
        if role.part == "answer":
            asked = self._asked.get(role.id or "", "nothing that was asked")
            return Said(counts, ("answer", role.id), f"{role.what} to {asked}", line, cut)
        named = Said(counts, (role.part, role.what), role.what, line, cut)
        return Said(counts, named.key, f"{role.what} {named.name}".rstrip(), line, cut)

    def said_raw(self, text: str, line: int = 0, *, cut: bool = False) -> Said:
        """A line of the extension's that is no JSON."""
        return Said({"text": text}, ("raw", ""), "a line that is no JSON", line, cut)

    def _form(self, question: Value) -> bytes:
        return msgspec.json.encode(comparable(question, self._ignored), order="sorted")
