"""The profile for macOS: what comes last holds, so the order of its rules is its meaning."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.transport.policy import Policy
from hilt.transport.runtimes import Runtime
from hilt.transport.seatbelt import gaps, profile, quoted
from support.properties import patient

HOME = Path("/Users/me")
STATE = HOME / "Library/hilt"
PROGRAM = Runtime(("/opt/x/bin/node", "main.js"), (Path("/opt/x/bin/node"),), (HOME / ".nvm/v20",))


def policy(**changes: Any) -> Policy:
    usual: dict[str, Any] = {
        "level": "standard",
        "code": STATE / "extensions/x",
        "data": STATE / "data/x",
        "readable": None,
        "writable": (),
        "hidden": (HOME / ".ssh", STATE),
        "home": HOME,
        "network": False,
        "programs": False,
    }
    return Policy(**(usual | changes))


def parsed(text: str) -> list[Any]:
    """The profile's language is a list of lists of words and strings."""
    tokens = _tokens(text)

    def read(closing: bool) -> list[Any]:
        found: list[Any] = []
        for token in tokens:
            if token == ")":
                assert closing
                return found
            found.append(read(closing=True) if token == "(" else token)
        assert not closing
        return found

    return read(closing=False)


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        letter = text[at]
        at += 1
        if letter in "()":
            yield letter
        elif letter == '"':
            word = ""
            while text[at] != '"':
                if text[at] == "\\":
                    at += 1
                    word += {"n": "\n", "r": "\r"}.get(text[at], text[at])
                else:
                    word += text[at]
                at += 1
            at += 1
            yield f"={word}"
        elif not letter.isspace():
            word = letter
            while at < len(text) and not text[at].isspace() and text[at] not in '()"':
                word += text[at]
                at += 1
            yield word


def allowed(text: str, operation: str, path: str = "") -> bool:
    """What the kernel makes of it: the last rule that fits decides."""
    verdict = False
    for verb, *rest in parsed(text):
        if verb == "version":
            continue
        operations = [word for word in rest if isinstance(word, str)]
        filters = [one for one in rest if isinstance(one, list)]
        if any(_covers(word, operation) for word in operations) and (
            not filters or any(_fits(one, path) for one in filters)
        ):
            verdict = verb == "allow"
    return verdict


def _covers(word: str, operation: str) -> bool:
    return word in ("default", operation) or (word.endswith("*") and operation.startswith(word[:-1]))


def _fits(one: list[str], path: str) -> bool:
    kind, name = one[0], one[1].removeprefix("=")
    if kind == "subpath":
        return path == name or path.startswith(f"{name}/")
    return kind in ("literal", "global-name") and path == name


@pytest.mark.parametrize("level", ["standard", "strict"])
def test_secrets_are_hidden_and_its_own_places_are_not(level: str) -> None:
    for readable in (None, (), (HOME,)):
        for writable in (None, (), (HOME,)):
            text = profile(policy(level=level, readable=readable, writable=writable), PROGRAM)
            for secret in (f"{HOME}/.ssh/id", f"{STATE}/auth.json", f"{STATE}/new", f"{STATE}/extensions/other/x"):
                assert not allowed(text, "file-read-data", secret)
                assert not allowed(text, "file-write-create", secret)
            assert allowed(text, "file-read-data", f"{STATE}/extensions/x/main.js")
            assert not allowed(text, "file-write-data", f"{STATE}/extensions/x/main.js")
            assert allowed(text, "file-read-data", f"{STATE}/data/x/file")
            assert allowed(text, "file-write-create", f"{STATE}/data/x/file")
            assert allowed(text, "file-read-data", "/usr/lib/libz.dylib")


def test_secrets_stay_hidden_when_the_code_lies_above_them() -> None:
    text = profile(policy(code=HOME, data=HOME / "data", readable=(), hidden=(HOME / ".ssh",)), PROGRAM)
    assert allowed(text, "file-read-data", f"{HOME}/main.js")
    assert not allowed(text, "file-read-data", f"{HOME}/.ssh/id")


@pytest.mark.parametrize(
    ("changes", "path", "reads", "writes"),
    [
        ({}, "/Users/me/notes", True, False),
        ({"readable": ()}, "/Users/me/notes", False, False),
        ({"readable": ()}, "/srv/notes", True, False),
        ({"readable": (), "level": "strict"}, "/srv/notes", False, False),
        ({"readable": (Path("/srv"),), "level": "strict"}, "/srv/notes", True, False),
        ({"readable": (), "writable": (Path("/srv"),), "level": "strict"}, "/srv/notes", True, True),
        ({"readable": (), "level": "strict"}, "/Users/me/.nvm/v20/lib/x.js", True, False),
        ({"writable": None}, "/srv/notes", True, True),
        ({}, "/private/tmp/x", False, False),
        ({}, "/dev/null", True, True),
        ({"level": "strict", "readable": ()}, "/dev/null", True, True),
        ({"writable": (STATE / "extensions/x",)}, f"{STATE}/extensions/x/new", True, True),
    ],
)
def test_files_are_there_as_the_policy_says(changes: dict[str, Any], path: str, reads: bool, writes: bool) -> None:
    text = profile(policy(**changes), PROGRAM)
    assert (allowed(text, "file-read-data", path), allowed(text, "file-write-data", path)) == (reads, writes)


@pytest.mark.parametrize("level", ["standard", "strict"])
def test_network_and_programs_are_there_when_granted(level: str) -> None:
    shut, open_ = (profile(policy(level=level, network=on, programs=on), PROGRAM) for on in (False, True))
    assert not allowed(shut, "process-exec", "/bin/ls")
    assert allowed(shut, "process-exec", "/opt/x/bin/node")
    assert allowed(open_, "process-exec", "/bin/ls")
    assert "(deny network*)" in shut and "(allow network" not in shut
    assert "(allow network-outbound (remote ip))" in open_
    assert open_.index("(deny network*)") < open_.index("(allow network-outbound")


def test_only_strict_denies_what_nobody_thought_of() -> None:
    assert allowed(profile(policy(), PROGRAM), "iokit-open")
    assert not allowed(profile(policy(level="strict"), PROGRAM), "iokit-open")
    assert gaps(policy()) != gaps(policy(level="strict"))


@patient
@given(st.text(st.sampled_from('\\"\n\r() ;a') | st.characters()))
def test_no_name_can_end_its_string(name: str) -> None:
    assert parsed(f"(allow file-read* (subpath {quoted(name)}))") == [["allow", "file-read*", ["subpath", f"={name}"]]]
    assert "\n" not in quoted(name)
