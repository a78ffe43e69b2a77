"""The matrix of attacks: each has a number, and at least one test that tries it has that number in a comment.

A number stands as in `# A9`, alone or with words, inside a test or above a group of them. What cannot be tried yet,
because what it is aimed at does not exist, is listed here with the reason, until it does.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from docs.fences import ROOT

ATTACKS = {
    "A1": "a cloned folder brings extensions along, and starting the agent there runs them",
    "A2": "what was trusted once is changed by a pull",
    "A3": "a project's extension takes the name of the user's guard",
    "A4": "a project's settings decide about its own trust, or where keys are sent",
    "A5": "a configuration that does not exist yet is created by whoever is confined",
    "A6": "a package is poisoned by an update, or a tag is moved",
    "A7": "an address makes git run something, or reach something else",
    "A8": "an archive writes elsewhere, holds devices, or never ends",
    "A9": "a link leads out of the tree",
    "A10": "a name leads to another directory",
    "A11": "an update or a removal deletes what the user put there",
    "A12": "secrets are in the environment",
    "A13": "keys are asked for through the protocol",
    "A14": "the conversation is read or rewritten",
    "A15": "a tool takes the name of a built-in",
    "A16": "an extension takes away a guard by registering its name",
    "A17": "what was approved is not what runs",
    "A18": "the question does not show all of it",
    "A19": "text commands the terminal",
    "A20": "a tool's description instructs the model, or becomes another one",
    "A21": "a tool's result passes for the user's words",
    "A22": "an extension types for the user, and answers for them",
    "A23": "something of an extension's looks like hilt's own question",
    "A24": "a guard is brought down, so that nobody guards",
    "A25": "another extension, or the host, is killed or traced",
    "A26": "an extension changes its own code, another's, or hilt's files",
    "A27": "a program of the project is taken for the one on PATH",
    "A28": "files are exchanged between the check and the start",
    "A29": "logs and other files can be read by others, or are links to something else",
    "A30": "somebody connects to a port",
    "A31": "an extension uses up the processor, or tokens",
    "A32": "what was read is sent away over the network",
    "A33": "characters that cannot be seen hide what is there",
}


@dataclass(frozen=True, slots=True)
class Pending:
    """What is not tried yet, and how to notice that it can be."""

    reason: str
    sign: str
    """A path below src/hilt, or words in the source there, which do not exist as long as this is true."""
    partly: bool = False
    """Some of it is tried: the number must stand in a test all the same."""

    def still(self) -> bool:
        source = ROOT / "src" / "hilt"
        if "/" in self.sign and " " not in self.sign and (source / self.sign).exists():
            return False
        return not any(self.sign in path.read_text(encoding="utf-8") for path in source.rglob("*.py"))


PENDING: dict[str, Pending] = {}

_NUMBER = re.compile(r"\bA(?:[1-9]|[1-9][0-9])\b")
_IN_A_COMMENT = re.compile(rf"#.*{_NUMBER.pattern}")


@cache
def _named() -> dict[str, list[str]]:
    """By number, the places of the comments that have it."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if path.parent.name != "docs":
            for number, line in _numbers(path.read_text(encoding="utf-8")):
                found.setdefault(number, []).append(f"{path.relative_to(ROOT)}:{line}")
    return found


def _numbers(source: str) -> Iterator[tuple[str, int]]:
    """Those in comments at which, or below which, a test stands."""
    if not _IN_A_COMMENT.search(source):
        return  # taking it apart takes long
    last = max((node.end_lineno or 0 for node in ast.parse(source).body if _is_test(node)), default=0)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and token.start[0] <= last:
            yield from ((number, token.start[0]) for number in _NUMBER.findall(token.string))


def _is_test(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")


def test_every_attack_is_tried_by_a_test_that_has_its_number() -> None:
    exempt = {number for number, pending in PENDING.items() if not pending.partly}
    missing = {number: words for number, words in ATTACKS.items() if number not in _named().keys() | exempt}
    assert missing == {}


def test_no_test_has_a_number_that_is_none() -> None:
    assert {number: places for number, places in _named().items() if number not in ATTACKS} == {}
    assert list(ATTACKS) == [f"A{number}" for number in range(1, len(ATTACKS) + 1)]


def test_what_cannot_be_tried_yet_still_cannot() -> None:
    for number, pending in PENDING.items():
        assert pending.still(), f"{number} can be tried: {pending.sign!r} exists, and it says here: {pending.reason}"
        assert pending.partly or number not in _named(), (
            f"{number} is tried by {_named()[number]}: take it off the list"
        )


def test_imitating_a_question_is_tried_where_questions_and_panels_are() -> None:
    places = [place.partition(":")[0] for place in _named()["A23"]]
    assert {"tests/frontends/test_consent.py", "tests/frontends/tui/dialogs/test_imitation.py"} <= set(places)


def test_only_comments_at_tests_count() -> None:
    source = '"""A1"""\n# A2: this\ndef test_it():\n    x = "A3"  # A4, and A55\n\n# A6\nX = 1\n'
    assert list(_numbers(source)) == [("A2", 2), ("A4", 4), ("A55", 4)]
    assert Path(__file__).parent.name == "docs"  # whose own numbers do not count


def test_a_sign_of_what_was_pending_is_noticed() -> None:
    assert not Pending("", "frontends/terminal.py").still()
    assert not Pending("", "def clean(").still()
    assert Pending("", "frontends/hologram").still()
