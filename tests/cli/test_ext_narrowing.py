"""`.hilt/config.toml` of a project takes away; it gives nothing, and whatever it says, hilt runs."""

import json
from pathlib import Path

import pytest

from hilt.cli.config import Config, Guards
from hilt.cli.narrowing import narrowed
from hilt.packages.choices import Choices
from support.agent import calls, says
from support.ext_site import ExtSite
from support.extending import tool

WRITE = calls(("bash", {"command": "touch written"}))


@pytest.fixture
def site(tmp_path: Path) -> ExtSite:
    return ExtSite(tmp_path)


def project(site: ExtSite, text: str | bytes) -> None:
    path = site.project / ".hilt" / "config.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)


def narrow(tmp_path: Path, text: str, config: Config | None = None) -> tuple[Config, list[str]]:
    """What becomes of the user's settings, and what the user is told."""
    told: list[str] = []
    (tmp_path / "config.toml").write_text(text)
    return narrowed(config or Config(), tmp_path / "config.toml", told.append), told


# What it can take away


def test_a_project_can_have_the_user_asked_before_tools_run(site: ExtSite) -> None:
    project(site, 'permissions = "ask"\n')
    done = site.run("-p", "go", *site.script(WRITE, says("done")))

    assert "permission" in done.err and not (site.project / "written").exists()


def test_a_project_can_allow_fewer_steps(site: ExtSite) -> None:
    project(site, "max_steps = 1\n")
    done = site.run("-p", "go", *site.script(WRITE, says("done")))

    assert done.code == 1 and "1" in done.err and "step" in done.err


def test_a_project_can_confine_the_file_tools_to_itself(site: ExtSite) -> None:
    (site.folder / "outside.txt").write_text("secret")
    project(site, "jail = true\n")
    script = site.script(calls(("read", {"path": str(site.folder / "outside.txt")})), says("done"))
    done = site.run("--json", "go", *script)

    assert "secret" not in json.dumps([event for event in done.events if event["type"] == "tool_result"])


def test_a_project_can_switch_off_and_confine_what_comes_with_it(site: ExtSite) -> None:
    tool("theirs").write(site.project / ".hilt" / "extensions")
    project(site, '[extensions."project:theirs"]\nenabled = false\nsandbox = "strict"\nrevoked = ["net"]\n')
    told = site.json("info", "project:theirs")

    assert (told["state"], told["enabled"], told["sandbox"]) == ("disabled", False, "strict")
    assert told["revoked"] == ["net"]


def test_the_stricter_of_both_holds(tmp_path: Path) -> None:
    mine = Config(permissions="accept-edits", max_steps=9, guards=Guards("ask", {"a": "allow", "b": "block"}))
    text = 'permissions = "%s"\nmax_steps = %d\n[guards]\non_failure = "%s"\n'
    stricter, _ = narrow(tmp_path, text % ("ask", 3, "block"), mine)
    milder, _ = narrow(tmp_path, text % ("yolo", 30, "allow"), mine)
    between, _ = narrow(tmp_path, text % ("accept-edits", 9, "ask"), mine)

    assert (stricter.permissions, stricter.max_steps) == ("ask", 3)
    assert stricter.guards == Guards("block", {"a": "block", "b": "block"})
    assert milder == mine
    assert between.guards == Guards("ask", {"a": "ask", "b": "block"})


def test_what_the_user_took_away_stays_so(tmp_path: Path) -> None:
    mine = Choices(enabled=False, off=("tool:a",), revoked=("net",), sandbox="strict")
    text = '[extensions."project:x"]\nenabled = true\noff = ["guard"]\nrevoked = ["exec"]\n'
    config, told = narrow(tmp_path, text, Config(extensions={"project:x": mine}))

    after = config.extensions["project:x"]
    assert told == [] and (after.enabled, after.sandbox) == (False, "strict")
    assert (after.off, after.revoked) == (("tool:a", "guard"), ("net", "exec"))


# What it cannot give (A4)


def test_where_the_model_is_and_what_the_users_own_extensions_do_is_told_and_not_heeded(site: ExtSite) -> None:
    tool("mine").write(site.home / "extensions")
    project(
        site,
        'base_url = "http://127.0.0.1:9"\nprovider = "openai"\nmodel = "evil"\npermissions = "ask"\n'
        '[extensions.mine]\nenabled = false\ngrants = ["env:TOKEN"]\n',
    )
    done = site.run("--json", "go", *site.script(WRITE, calls(("mine", {})), says("done")))
    row = site.row("mine")

    assert done.code == 0
    assert "base_url, model, provider: not for a project to say" in done.err
    assert "about mine only you decide" in done.err
    assert (row["enabled"], row["state"]) == (True, "stopped") and site.json("info", "mine")["grants"] == []
    assert not (site.project / "written").exists()  # what it takes away holds all the same


@pytest.mark.parametrize(
    "choice",
    ['grants = ["env:TOKEN"]', 'sandbox = "off"', 'sandbox = "standard"', "nice = 0", "limits = {memory_mb = 9000}"],
)
def test_a_project_cannot_give_its_own_extensions_anything(tmp_path: Path, choice: str) -> None:
    config, told = narrow(tmp_path, f'max_steps = 3\n[extensions."project:x"]\n{choice}\n')

    assert config.extensions == {} and config.max_steps == 3
    (notice,) = told
    assert 'extensions."project:x" is not heeded' in notice and "can only narrow" in notice


def test_guards_cannot_be_told_apart_by_a_project(tmp_path: Path) -> None:
    config, told = narrow(tmp_path, 'jail = true\n[guards]\non_failure = "block"\nby_name = {mine = "allow"}\n')

    assert config.jail and config.guards == Guards() and len(told) == 1 and "by_name" in told[0]


# What it may hold besides


@pytest.mark.parametrize(
    "text",
    [
        b"permissions = ",
        b"\xff\xfe",
        b"a = " + b"[" * 30_000,
        b"a = " + b"9" * 5_000,
        b'x = "\x00"',
        b"# " + b"x" * 70_000,
        b"extensions = 3\n",
        b'[extensions."project:x"]\noff = ["nonsense"]\n',
        b'[extensions."project:x"]\nrevoked = ["nonsense"]\n',
        b'extensions."project:\\u001b[2J\\u202e" = 3\n',
        b"max_steps = true\n",
        b"max_steps = 0\n",
        b"".join(b"k%d = 1\n" % number for number in range(5_000)),
    ],
)
def test_a_file_that_is_damaged_or_hostile_is_told_in_a_few_words(tmp_path: Path, text: bytes) -> None:
    told: list[str] = []
    (tmp_path / "config.toml").write_bytes(text)
    config = narrowed(Config(), tmp_path / "config.toml", told.append)

    assert (config.extensions, config.max_steps, config.permissions) in (({}, 50, None), ({}, 50, "yolo"))
    (notice,) = told
    assert str(tmp_path / "config.toml") in notice and len(notice) < 600
    assert not set(notice) & {"\x1b", "\u202e"}


@pytest.mark.parametrize("text", [b"a = " + b"[" * 30_000, b'[extensions."project:x"]\noff = ["nonsense"]\n'])
def test_whatever_is_in_it_hilt_runs(site: ExtSite, text: bytes) -> None:
    project(site, text)
    done = site.run("-p", "hi", *site.script(says("hello")))

    assert (done.code, done.out) == (0, "hello\n") and "config.toml" in done.err
    assert site.ext("list").code == 0


def test_what_is_no_file_is_not_waited_for(site: ExtSite) -> None:
    (site.project / ".hilt" / "config.toml").mkdir(parents=True)
    done = site.run("-p", "hi", *site.script(says("hello")))

    assert (done.code, done.out) == (0, "hello\n") and "not a regular file" in done.err
