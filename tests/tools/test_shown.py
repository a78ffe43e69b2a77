"""What a person allowed is what runs: the file may change between the question and the run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hilt.agent.permissions import Permissions
from hilt.model.content import text_of
from hilt.model.events import ToolResultAdded
from hilt.model.ports import PermissionAnswer, PermissionRequest, Scope
from support.agent import calls, running, says, script
from tools.kit import Bench

WRITE = ("write", {"path": "f", "content": "mine\n"})
EDIT = ("edit", {"path": "f", "edits": [{"oldText": "two", "newText": "TWO"}]})
Named = tuple[str, dict[str, Any]]


class Slow:
    """Says yes, after something has happened to the files."""

    def __init__(self, meanwhile: Callable[[], object], scope: Scope = "once") -> None:
        self.meanwhile = meanwhile
        self.scope = scope
        self.shown: list[str] = []

    async def ask(self, request: PermissionRequest) -> PermissionAnswer:
        self.shown.append(request.preview.text)
        self.meanwhile()
        return PermissionAnswer(approved=True, scope=self.scope)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def outcome(bench: Bench, person: Slow, *named: Named) -> ToolResultAdded:
    model = script(bench.root.parent, *(calls(one) for one in named), says("ok"))
    async with running(model, *bench.tools.values(), permissions=Permissions("ask", person)) as harness:
        await harness.say("go")
        result: ToolResultAdded = harness.of(ToolResultAdded)[-1]
        return result


def refused(result: ToolResultAdded) -> bool:
    text = text_of(result.content)
    return (
        result.is_error
        and "changed after it was shown: nothing was done" in text
        and text.endswith("look at it again and repeat the call")
    )


@pytest.mark.parametrize("call", [WRITE, EDIT])
async def test_an_unchanged_file_is_changed_as_it_was_shown(bench: Bench, call: Named) -> None:
    (bench.root / "f").write_text("one\ntwo\nthree\n")
    result = await outcome(bench, Slow(lambda: None), call)
    assert not result.is_error
    assert (bench.root / "f").read_text() in ("mine\n", "one\nTWO\nthree\n")


@pytest.mark.parametrize("call", [WRITE, EDIT])
async def test_a_file_whose_content_changed_is_left_alone(bench: Bench, call: Named) -> None:
    file = bench.root / "f"
    file.write_text("one\ntwo\nthree\n")
    result = await outcome(bench, Slow(lambda: file.write_text("one\ntwo\nFOUR\n")), call)
    assert refused(result)
    assert file.read_text() == "one\ntwo\nFOUR\n"
    assert bench.remembered == []


async def test_a_file_that_appeared_is_not_overwritten(bench: Bench) -> None:
    file = bench.root / "f"
    assert refused(await outcome(bench, Slow(lambda: file.write_text("theirs\n")), WRITE))
    assert file.read_text() == "theirs\n"


async def test_a_file_that_vanished_is_not_made_again(bench: Bench) -> None:
    file = bench.root / "f"
    file.write_text("one\n")
    assert refused(await outcome(bench, Slow(file.unlink), WRITE))
    assert not file.exists()


@pytest.mark.parametrize("call", [WRITE, EDIT])
async def test_a_file_that_became_a_link_to_the_same_text_is_refused(bench: Bench, call: Named) -> None:
    file, other = bench.root / "f", bench.root.parent / "precious"
    for path in (file, other):
        path.write_text("one\ntwo\nthree\n")

    def swap() -> None:
        file.unlink()
        file.symlink_to(other)

    assert refused(await outcome(bench, Slow(swap), call))
    assert other.read_text() == "one\ntwo\nthree\n"
    assert file.is_symlink()


async def test_a_new_file_that_became_a_link_is_refused(bench: Bench) -> None:
    file, other = bench.root / "f", bench.root.parent / "planted"
    assert refused(await outcome(bench, Slow(lambda: file.symlink_to(other)), WRITE))
    assert not other.exists()


async def test_a_link_that_was_turned_elsewhere_is_refused(bench: Bench) -> None:
    file = bench.root / "f"
    for name in ("a", "b"):
        (bench.root / name).write_text("one\ntwo\n")
    file.symlink_to("a")

    def turn() -> None:
        file.unlink()
        file.symlink_to("b")

    for call in (WRITE, EDIT):
        assert refused(await outcome(bench, Slow(turn), call))
        assert (bench.root / "b").read_text() == "one\ntwo\n"
        file.unlink()
        file.symlink_to("a")


async def test_a_folder_that_became_a_link_is_refused(bench: Bench) -> None:
    outside = bench.root.parent / "outside"
    outside.mkdir()
    person = Slow(lambda: (bench.root / "new").symlink_to(outside))
    assert refused(await outcome(bench, person, ("write", {"path": "new/f", "content": "x"})))
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("call", [WRITE, EDIT])
async def test_a_change_through_a_link_names_the_real_file(bench: Bench, call: Named) -> None:
    file, real = bench.root / "f", bench.root.parent / "real"
    real.write_text("one\ntwo\n")
    file.symlink_to(real)
    person = Slow(lambda: None)
    result = await outcome(bench, person, call)
    assert not result.is_error
    for text in (person.shown[0], text_of(result.content)):
        assert f"{file} → {real}" in text.split("\n")[0]
    assert real.read_text() in ("mine\n", "one\nTWO\n")


async def test_a_path_without_links_is_named_plainly(bench: Bench) -> None:
    assert "→" not in await bench.preview("write", path="sub/../f", content="x")


async def test_calls_of_a_remembered_permission_run_as_they_were_planned(bench: Bench) -> None:
    (bench.root / "f").write_text("one\ntwo\n")
    person = Slow(lambda: None, "session")
    again = ("edit", {"path": "f", "edits": [{"oldText": "TWO", "newText": "2"}]})
    assert not (await outcome(bench, person, EDIT, again)).is_error
    assert (bench.root / "f").read_text() == "one\n2\n"
    assert len(person.shown) == 1
