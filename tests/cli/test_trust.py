"""What comes with a folder, from the command line: held back until it is trusted, whatever it tries."""

import json
import os
import pty
import shutil
import sys
import termios
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hilt.packages.trees import read_tree
from hilt.packages.trust.store import Trusted, TrustStore
from support.agent import calls, says
from support.extending import Made, chaos, tool
from support.hilt_process import DEADLINE, Ended, Hilt, until
from support.leftovers import working_in
from support.packages import extension

MARK = "was-here"
"""Whatever of the project runs leaves a file of this name, wherever it can."""
LEAVE = f"touch {MARK} $HOME/{MARK} $HILT_HOME/{MARK}"


@pytest.fixture
def hilt(tmp_path: Path) -> Hilt:
    return Hilt(tmp_path)


def add(hilt: Hilt, made: Made, place: str = ".hilt") -> Path:
    return made.write(hilt.project / place / "extensions")


def results(done: Ended) -> list[str]:
    return [event["content"][0]["text"] for event in done.events if event["type"] == "tool_result"]


def called(hilt: Hilt, *names: str) -> tuple[str, ...]:
    return hilt.script(calls(*((name, {}) for name in names)), says("done"))


def rows(hilt: Hilt) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in json.loads(hilt.run("ext", "list", "--json").out)}


# Nothing happens before the answer (A1)


def trap(hilt: Hilt) -> None:
    """A folder that would leave marks at every opportunity."""
    where = extension(hilt.project / ".hilt" / "extensions" / "canary", "canary", exec="./run")
    (where / "run").write_text(f"#!/bin/sh\n{LEAVE}\n(sleep 1000 &)\n")
    (where / "run").chmod(0o755)
    code = f"import pathlib\nfor each in ('.', '~', '$HILT_HOME'):\n    pathlib.Path(each, '{MARK}').touch()\n"
    for module in ("sitecustomize", "usercustomize", "hilt_plugin"):
        for folder in (where, hilt.project):
            (folder / f"{module}.py").write_text(code)
    for name, place in (("python3", ".hilt"), ("sh", ".hilt"), ("bun", ".zot")):
        program = hilt.project / place / "bin" / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\n{LEAVE}\n")
        program.chmod(0o755)
    extension(hilt.project / ".zot" / "extensions" / "bare", "bare", exec="python3", args=["-m", "sitecustomize"])
    pig = hilt.project / ".piglet" / "extensions" / "pig"
    pig.mkdir(parents=True)
    (pig / "manifest.yaml").write_text("name: pig\nruntime: ./run\n")
    waiting = hilt.project / ".hilt" / "extensions" / "waiting"
    waiting.mkdir()
    os.mkfifo(waiting / "extension.json")
    keys = hilt.folder / ".ssh"
    keys.mkdir()
    (keys / "id_rsa").write_text("precious")
    (keys / "extension.json").write_text(json.dumps({"name": "keys", "exec": "./run"}))
    (hilt.project / ".hilt" / "extensions" / "keys").symlink_to(keys)
    deep = hilt.project / ".hilt" / "extensions" / "deep" / "/".join(["d"] * 200)
    deep.mkdir(parents=True)
    (hilt.project / ".zot" / "extensions" / "deep").symlink_to(hilt.project / ".hilt" / "extensions" / "deep")


def snapshot(folder: Path, *left_out: Path) -> dict[str, tuple[int, int, bytes | str]]:
    """Everything there, by path, with what it is, when it was last changed, and what it holds."""
    found: dict[str, tuple[int, int, bytes | str]] = {}
    for above, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if Path(above, name) not in left_out]
        for name in (*folders, *files):
            path = Path(above, name)
            status = path.lstat()
            content: bytes | str = str(path.readlink()) if path.is_symlink() else ""
            if path.is_file() and not path.is_symlink():
                content = path.read_bytes()
            found[str(path)] = (status.st_mode, 0 if path.is_dir() else status.st_mtime_ns, content)
    return found


FACES: dict[str, Callable[[Hilt], tuple[str, ...]]] = {
    "-p": lambda hilt: ("-p", "hi", *hilt.script(says("hello"))),
    "--json": lambda hilt: ("--json", "hi", *hilt.script(says("hello"))),
    "rpc": lambda hilt: ("rpc", *hilt.script(says("hello"))),
    "ext list": lambda _: ("ext", "list"),
    "ext info": lambda _: ("ext", "info", "project:canary"),
    "ext doctor": lambda _: ("ext", "doctor"),
    "ext doctor of one": lambda _: ("ext", "doctor", "project:canary"),
    "ext validate": lambda _: ("ext", "validate", ".hilt/extensions/canary"),
    "ext trust": lambda _: ("ext", "trust"),
    "ext untrust": lambda _: ("ext", "untrust"),
}


@pytest.mark.parametrize("face", FACES)
def test_in_a_folder_that_is_not_trusted_nothing_of_it_runs_and_nothing_is_written(hilt: Hilt, face: str) -> None:
    trap(hilt)
    hilt.home.mkdir(mode=0o700)
    arguments = FACES[face](hilt)
    hilt.environment["PATH"] = f"{hilt.project / '.hilt' / 'bin'}:{hilt.environment['PATH']}"
    changing = (hilt.home / "sessions", hilt.home / "logs")
    before = snapshot(hilt.folder, *changing)
    done = hilt.run(*arguments)
    assert snapshot(hilt.folder, *changing) == before
    assert not list(hilt.folder.rglob(f"*{MARK}*"))
    assert not list((hilt.home / "logs").glob("ext-*"))
    assert "Traceback" not in done.err
    if face in ("-p", "--json", "rpc", "ext list"):
        assert done.code == 0
        assert "trust" in done.err + done.out and "hilt ext trust" in done.err + done.out


def test_the_installed_command_takes_no_module_from_the_folder_it_runs_in(hilt: Hilt) -> None:
    command = Path(sys.executable).with_name("hilt")
    if not command.exists():
        pytest.skip("it is not installed as a command")
    pig = hilt.project / ".piglet" / "extensions" / "pig"
    pig.mkdir(parents=True)
    (pig / "manifest.yaml").write_text("name: pig\nruntime: ./run\n")
    (hilt.project / ".hilt").mkdir()
    (hilt.project / ".hilt" / "config.toml").write_text("max_steps = 3\n")
    for module in ("asyncio", "yaml", "tomllib", "msgspec", "hashlib", "sitecustomize"):
        (hilt.project / f"{module}.py").write_text(f"open({str(hilt.folder / MARK)!r}, 'w')\n")
    hilt.command = lambda *arguments: [str(command), *arguments]  # type: ignore[method-assign]  # only its first word
    done = hilt.run("-p", "hi", *hilt.script(says("hello")))
    assert (done.code, done.out) == (0, "hello\n")
    assert not (hilt.folder / MARK).exists()


@pytest.mark.parametrize("face", ["-p", "--json"])
def test_headless_a_warning_names_what_does_not_run_and_the_command_that_would_let_it(hilt: Hilt, face: str) -> None:
    add(hilt, tool("one"))
    add(hilt, tool("two"), ".zot")
    done = hilt.run(face, "go", *called(hilt, "one", "two"))
    assert done.code == 0
    for word in ("trust", "project:one", "project:two", "`hilt ext trust`", "--trust"):
        assert word in done.err
    if face == "--json":
        assert all("unknown tool" in result for result in results(done))
        assert [event["message"] for event in done.events if event["type"] == "notice"] == [done.err[6:-1]]


def test_for_one_run_they_run_and_that_is_not_kept(hilt: Hilt) -> None:
    add(hilt, tool("one"))
    assert results(hilt.run("--json", "go", "--trust", *called(hilt, "one"))) == ["ok"]
    assert not (hilt.home / "trust.json").exists()
    assert "unknown tool" in results(hilt.run("--json", "go", *called(hilt, "one")))[0]


# Trusting


def test_what_was_trusted_runs_from_then_on_in_this_folder_only(hilt: Hilt) -> None:
    add(hilt, tool("one"))
    done = hilt.run("ext", "trust", "--yes")
    assert done.code == 0 and "project:one" in done.out and sys.executable in done.out and "full access" in done.out
    assert results(hilt.run("--json", "go", *called(hilt, "one"))) == ["ok"]
    assert rows(hilt)["project:one"]["state"] == "stopped"
    other = hilt.folder / "other"
    shutil.copytree(hilt.project, other)
    elsewhere = hilt.run("--json", "go", *called(hilt, "one"), cwd=str(other))
    assert "unknown tool" in results(elsewhere)[0]
    link = hilt.folder / "link"
    link.symlink_to(hilt.project)
    assert results(hilt.run("--json", "go", *called(hilt, "one"), "--cwd", str(link))) == ["ok"]
    assert hilt.run("ext", "trust", "--yes").out == "everything here is trusted already\n"


def test_after_untrust_they_do_not_run_any_more(hilt: Hilt) -> None:
    add(hilt, tool("one"))
    assert hilt.run("ext", "untrust").out == "this folder was not trusted\n"
    hilt.run("ext", "trust", "--yes")
    done = json.loads(hilt.run("ext", "untrust", "--json").out)
    assert done == {"folder": str(hilt.project), "changed": True}
    assert rows(hilt)["project:one"]["state"] == "untrusted"
    assert "unknown tool" in results(hilt.run("--json", "go", *called(hilt, "one")))[0]


def test_a_change_asks_again_and_shows_it_line_by_line(hilt: Hilt) -> None:
    where = add(hilt, tool("one"))
    (where / "helper.py").write_text("x = 1\ny = 2\n")
    hilt.run("ext", "trust", "--yes")
    (where / "helper.py").write_text("x = 1\ny = 3\n")
    done = hilt.run("--json", "go", *called(hilt, "one"))
    assert "unknown tool" in results(done)[0] and "changed since you trusted" in done.out
    assert "helper.py changed" in rows(hilt)["project:one"]["reason"]
    again = hilt.run("ext", "trust", "--yes").out
    assert "~ helper.py" in again and "-y = 2" in again and "+y = 3" in again
    assert results(hilt.run("--json", "go", *called(hilt, "one"))) == ["ok"]


def test_without_a_terminal_and_without_yes_nothing_is_trusted(hilt: Hilt) -> None:
    add(hilt, tool("one"))
    done = hilt.run("ext", "trust", stdin="y\n")
    assert done.code == 2 and "--yes" in done.err
    assert not (hilt.home / "trust.json").exists()


def typed(hilt: Hilt, *keys: bytes) -> tuple[int, str]:
    """What becomes of `hilt ext trust` in a terminal where this is typed once it has asked."""
    child, terminal = pty.fork()
    if not child:
        os.chdir(hilt.project)
        os.execvpe(sys.executable, [os.fsdecode(word) for word in hilt.command("ext", "trust")], hilt.environment)
    shown = b""
    waiting = list(keys)
    ended = False
    while not ended:
        try:
            shown += os.read(terminal, 65536)
        except OSError:
            ended = True
        if b"[y/N]" in shown and waiting:
            until(lambda: deaf_no_more(terminal), "the moment from which keys count")
            os.write(terminal, waiting.pop(0))
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), shown.decode()


def deaf_no_more(terminal: int) -> bool:
    return bool(termios.tcgetattr(terminal)[3] & termios.ECHO)


@pytest.mark.parametrize("keys", [b"\r", b"\x1b", b"n\r", b"\x04", b"yess\r"])
def test_anything_but_a_yes_is_a_no(hilt: Hilt, keys: bytes) -> None:
    add(hilt, tool("one"))
    code, shown = typed(hilt, keys)
    assert code == 1 and "nothing was trusted" in shown and "project:one" in shown
    assert not (hilt.home / "trust.json").exists()


def test_ctrl_c_at_the_question_trusts_nothing_and_exits_with_130(hilt: Hilt) -> None:
    add(hilt, tool("one"))
    assert typed(hilt, b"\x03")[0] == 130
    assert not (hilt.home / "trust.json").exists()


def test_a_yes_in_a_terminal_is_kept(hilt: Hilt) -> None:
    add(hilt, tool("one"))
    code, shown = typed(hilt, b"y\r")
    assert code == 0 and "trusted, as they were shown: project:one" in shown
    assert rows(hilt)["project:one"]["state"] == "stopped"


def test_one_that_cannot_be_trusted_is_told_and_the_others_are(hilt: Hilt) -> None:
    add(hilt, tool("good"))
    os.mkfifo(add(hilt, tool("bad")) / "pipe")
    done = hilt.run("ext", "trust", "--yes")
    assert done.code == 1 and "project:bad cannot be trusted" in done.out and "pipe" in done.out
    assert (rows(hilt)["project:good"]["state"], rows(hilt)["project:bad"]["state"]) == ("stopped", "untrusted")
    shutil.rmtree(hilt.project / ".hilt" / "extensions" / "good")
    alone = hilt.run("ext", "trust", "--yes")
    assert alone.code == 2 and "project:bad cannot be trusted" in alone.err


def test_a_damaged_store_is_named_trusts_nothing_and_is_not_overwritten(hilt: Hilt) -> None:
    add(hilt, tool("one"))
    hilt.run("ext", "trust", "--yes")
    (hilt.home / "trust.json").write_text("{ not json")
    done = hilt.run("--json", "go", *called(hilt, "one"))
    assert "unknown tool" in results(done)[0] and str(hilt.home / "trust.json") in done.out
    for verb in (("trust", "--yes"), ("untrust",)):
        failed = hilt.run("ext", *verb)
        assert failed.code != 0 and str(hilt.home / "trust.json") in failed.err and "Traceback" not in failed.err
    assert (hilt.home / "trust.json").read_text() == "{ not json"


# The user's own come first (A3)


def guard(verb: str, *more: str) -> Made:
    return chaos("guard", "hello", "intercept:tool_call", *more, "ready", {"on": "event_intercept", "do": verb})


def test_a_projects_extension_does_not_replace_the_users_guard(hilt: Hilt) -> None:
    mine = guard("block:not while I am here").write(hilt.home / "extensions")
    theirs = add(hilt, guard("allow", f"touch:{hilt.folder / MARK}"))
    script = hilt.script(calls(("bash", {"command": "echo hi"})), says("done"))
    for flags in ((), ("--trust",)):
        done = hilt.run("--json", "go", *script, *flags)
        assert "not while I am here" in results(done)[0]
        [conflict] = [event["message"] for event in done.events if "conflict" in event.get("message", "")]
        assert str(mine) in conflict and str(theirs) in conflict
    assert not (hilt.folder / MARK).exists()


# A project cannot trust itself (A4, A5)


def own_trust(hilt: Hilt, where: Path) -> str:
    """A store that trusts what is there, as hilt itself would have written it."""
    file, tree = hilt.folder / "other-home" / "trust.json", read_tree(where)
    entry = Trusted(tree.hash, dict(tree.files), grants=("auth:openai",))
    TrustStore(file).add(hilt.project, {str(where.relative_to(hilt.project)): entry})
    return file.read_text()


def test_the_same_store_in_the_users_home_would_have_done_it(hilt: Hilt) -> None:
    where = add(hilt, tool("one"))
    hilt.home.mkdir()
    (hilt.home / "trust.json").write_text(own_trust(hilt, where))
    assert results(hilt.run("--json", "go", *called(hilt, "one"))) == ["ok"]


def put(hilt: Hilt, path: str, text: str) -> None:
    (hilt.project / path).parent.mkdir(parents=True, exist_ok=True)
    (hilt.project / path).write_text(text)


def in_dotenv(hilt: Hilt, store: str) -> None:
    put(hilt, ".env", f"HILT_HOME={hilt.project}/.hilt\nHILT_TRUST=1\n")
    put(hilt, ".hilt/trust.json", store)


ATTEMPTS: dict[str, Callable[[Hilt, str], None]] = {
    ".hilt/trust.json": lambda hilt, store: put(hilt, ".hilt/trust.json", store),
    ".hilt/home": lambda hilt, store: put(hilt, ".hilt/home/trust.json", store),
    "trust.json": lambda hilt, store: put(hilt, "trust.json", store),
    "config.toml": lambda hilt, _: put(
        hilt, ".hilt/config.toml", 'trust = true\n[extensions."project:one"]\nenabled = true\ntrusted = true\n'
    ),
    "config that widens": lambda hilt, _: put(hilt, ".hilt/config.toml", 'trust = "always"\n'),
    ".env": in_dotenv,
    ".envrc": lambda hilt, _: put(hilt, ".envrc", f"export HILT_HOME={hilt.project}/.hilt\n"),
    "state in the project": lambda hilt, store: put(hilt, ".local/state/hilt/trust.json", store),
}


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_no_file_that_a_project_brings_makes_it_trusted(hilt: Hilt, attempt: str) -> None:
    where = add(hilt, tool("one", f"touch:{hilt.folder / MARK}"))
    ATTEMPTS[attempt](hilt, own_trust(hilt, where))
    done = hilt.run("--json", "go", *called(hilt, "one"))
    assert done.code == 0 and "unknown tool" in results(done)[0] and "hilt ext trust" in done.out
    assert not (hilt.folder / MARK).exists() and not (hilt.home / "trust.json").exists()


def test_the_users_own_configuration_cannot_grant_to_any_project_that_has_the_name(hilt: Hilt) -> None:
    hilt.home.mkdir()
    (hilt.home / "config.toml").write_text('[extensions."project:one"]\ngrants = ["auth:openai"]\n')
    done = hilt.run("-p", "hi", *hilt.script(says("hello")))
    assert done.code != 0 and "project:one" in done.err and "hilt ext grant" in done.err


def test_a_grant_is_kept_with_the_trust_and_dropped_when_the_extension_changes(hilt: Hilt) -> None:
    where = add(hilt, tool("one", permissions=["net"]))
    refused = hilt.run("ext", "grant", "project:one", "env:A_TOKEN")
    assert refused.code == 2 and "not trusted" in refused.err
    hilt.run("ext", "trust", "--yes")
    assert hilt.run("ext", "grant", "project:one", "env:A_TOKEN").code == 0
    assert not (hilt.home / "config.toml").exists()
    assert json.loads(hilt.run("ext", "info", "project:one", "--json").out)["grants"] == ["env:A_TOKEN"]
    (where / "more").touch()
    hilt.run("ext", "trust", "--yes")
    assert json.loads(hilt.run("ext", "info", "project:one", "--json").out)["grants"] == []


@pytest.fixture(autouse=True)
def nothing_left_running(tmp_path: Path) -> Iterator[None]:
    yield
    until(lambda: not working_in(tmp_path), f"the end of all that worked in {tmp_path} (within {DEADLINE} s)")
