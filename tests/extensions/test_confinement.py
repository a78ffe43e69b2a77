"""Extensions in a sandbox, in the host: what each kind of wish and refusal comes to, seen from inside."""

import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hilt.packages.choices import Choices
from hilt.transport import bubblewrap, landlock
from support.extending import Extended, Made, extended
from support.leftovers import nothing_left

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap and Landlock are Linux's")

PROBE = """
import json, os, socket, subprocess, sys


def send(**frame):
    print(json.dumps(frame), flush=True)


def attempt(args):
    match args["do"]:
        case "read":
            return open(args["path"]).read()
        case "write":
            open(args["path"], "w").write("mine")
        case "connect":
            socket.create_connection(("127.0.0.1", args["port"]), 2).close()
        case "run":
            subprocess.run(["/bin/true"], check=True)
    return "done"


send(type="hello", name="probe")
send(type="register_tool", name="probe", description="try", schema={"type": "object"})
send(type="ready")
for line in sys.stdin:
    frame = json.loads(line)
    if frame["type"] == "hello_ack":
        data = frame["data_dir"]
    if frame["type"] == "tool_call":
        try:
            text = data if frame["args"]["do"] == "data" else attempt(frame["args"])
        except Exception as error:
            text = f"denied: {type(error).__name__}"
        send(type="tool_result", id=frame["id"], content=[{"type": "text", "text": text}])
"""


def probe(**manifest: Any) -> Made:
    return Made("probe", {"exec": sys.executable, "args": ["-I", "-S", "probe.py"], **manifest}, {"probe.py": PROBE})


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project with something in it, and a home elsewhere. Not below /tmp, of which every one has its own."""
    with tempfile.TemporaryDirectory(prefix=".hilt-world-", dir=Path.home()) as root:
        home, project = Path(root, "me"), Path(root, "project")
        home.mkdir()
        project.mkdir()
        (project / "src").mkdir()
        (project / "notes.txt").write_text("private")
        monkeypatch.setenv("HOME", str(home))
        yield project


async def tries(it: Extended, folder: Path) -> dict[str, bool]:
    """Which of the four things it can do."""
    await it.ready("probe")
    with socket.create_server(("127.0.0.1", 0)) as server:
        attempts = {
            "read": {"path": str(folder / "notes.txt")},
            "write": {"path": str(folder / "src" / "new.txt")},
            "net": {"do": "connect", "port": server.getsockname()[1]},
            "run": {},
        }
        answers = {name: (await it.call("probe", **{"do": name, **args}))[0] for name, args in attempts.items()}
    assert (folder / "src" / "new.txt").exists() == (answers["write"] == "done")
    return {name: not answer.startswith("denied") for name, answer in answers.items()}


NOTHING: dict[str, bool] = {}
EVERYTHING = {"read": True, "write": True, "net": True, "run": True}


@pytest.mark.parametrize(
    ("permissions", "choices", "can"),
    [
        (None, Choices(), EVERYTHING),
        (None, Choices(sandbox="standard"), {"read": True, "run": True}),
        (None, Choices(sandbox="standard", grants=("net",)), {"read": True, "run": True, "net": True}),
        (None, Choices(sandbox="strict"), NOTHING),
        (None, Choices(revoked=("net",)), {"read": True, "write": True, "run": True}),
        (None, Choices(revoked=("fs.write",)), {"read": True, "net": True, "run": True}),
        ([], Choices(), NOTHING),
        ([], Choices(sandbox="off"), EVERYTHING),
        (["fs.read:${project}"], Choices(), {"read": True}),
        (["fs.write:${project}"], Choices(), {"read": True, "write": True}),
        (["fs.read:${project}/src"], Choices(), NOTHING),  # of the project, that much and no more
        (["fs.write:${project}/src"], Choices(), {"write": True}),
        (["fs.read:/nowhere"], Choices(sandbox="standard"), NOTHING),
        (["net"], Choices(), {"net": True}),
        (["net"], Choices(revoked=("net",)), NOTHING),
        (["exec"], Choices(), {"run": True}),
        (["exec"], Choices(sandbox="strict"), {"run": True}),
    ],
    ids=str,
)
async def test_it_can_do_what_it_was_allowed_and_nothing_else(
    folder: Path, permissions: list[str] | None, choices: Choices, can: dict[str, bool]
) -> None:
    made = probe() if permissions is None else probe(permissions=permissions)
    async with nothing_left(), extended(folder, made, choices={"probe": choices}) as it:
        assert await tries(it, folder) == dict.fromkeys(EVERYTHING, False) | can


async def test_its_data_directory_is_apart_from_its_code_and_can_be_written(folder: Path) -> None:
    async with extended(folder, probe(permissions=[])) as it:
        await it.ready("probe")
        told = Path((await it.call("probe", do="data"))[0])
        assert told == folder / "data" / "probe"
        assert await it.call("probe", do="write", path=str(told / "state")) == ("done", False)
        code = folder / "extensions" / "probe" / "probe.py"
        assert (await it.call("probe", do="write", path=str(code)))[0].startswith("denied")  # A26
    assert (told / "state").read_text() == "mine"


async def test_one_that_must_be_confined_and_cannot_be_does_not_start_and_says_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bubblewrap, "_known", ((), "bubblewrap is not installed"))
    monkeypatch.setattr(landlock, "version", lambda: 0)
    async with extended(folder, probe(permissions=[])) as it:
        status = await it.state("probe", "failed")
        assert "sandbox" in status.reason and "bubblewrap" in status.reason and status.pid is None


async def test_landlock_holds_it_where_bubblewrap_is_missing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not landlock.version():
        pytest.skip("this kernel has no Landlock")
    monkeypatch.setattr(bubblewrap, "_known", ((), "bubblewrap is not installed"))
    async with nothing_left(), extended(folder, probe(permissions=["fs.read:${project}"])) as it:
        assert await tries(it, folder) == dict.fromkeys(EVERYTHING, False) | {"read": True}


@pytest.mark.parametrize("kind", ["fs.read", "fs.write"])
@pytest.mark.parametrize("place", ["${project}/docs", "${project}/src/deep", "${data}/cache", "~/desk/cache"])
async def test_a_link_that_was_planted_does_not_turn_a_small_permission_into_a_large_one(
    folder: Path, place: str, kind: str
) -> None:
    """By the project's author, or by the extension when it ran before."""
    private = folder.parent / "private"
    private.mkdir()
    (private / "diary").write_text("dear diary")
    (folder.parent / "me" / "desk").mkdir()
    names = (("${project}", folder), ("${data}", folder / "data" / "probe"), ("~", folder.parent / "me"))
    word, base = next((word, base) for word, base in names if place.startswith(word))
    link = base / place[len(word) + 1 :]
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(private)
    made = probe(permissions=[f"{kind}:{place}", "fs.write:~/desk"], sandbox="strict")
    async with nothing_left(), extended(folder, made) as it:
        await it.ready("probe")
        for path in (link / "diary", private / "diary"):
            assert (await it.call("probe", do="read", path=str(path)))[0].startswith("denied")
            assert (await it.call("probe", do="write", path=str(path)))[0].startswith("denied")
    assert (private / "diary").read_text() == "dear diary"
    assert f"a link there leads elsewhere: {link}" in (folder / "logs" / "ext-probe.log").read_text()


async def test_a_link_of_the_users_own_is_followed_and_so_is_one_that_stays_in_the_project(folder: Path) -> None:
    shelf = folder.parent / "shelf"
    shelf.mkdir()
    (shelf / "book").write_text("a book")
    (folder.parent / "me" / "books").symlink_to(shelf)
    (folder / "docs").symlink_to("src")
    (folder / "src" / "page").write_text("a page")
    made = probe(permissions=["fs.read:~/books", "fs.read:${project}/docs"], sandbox="strict")
    async with extended(folder, made) as it:
        await it.ready("probe")
        assert (await it.call("probe", do="read", path=str(folder.parent / "me/books/book")))[0] == "a book"
        assert (await it.call("probe", do="read", path=str(folder / "docs/page")))[0] == "a page"
