"""`hilt ext list` and `info` tell all there is to know, and start nothing for it."""

import json
from pathlib import Path

import pytest

from support.agent import says
from support.ext_site import ExtSite, canary, failing
from support.extending import Made, tool

FIELDS = {"name", "version", "dialect", "state", "source", "enabled", "pinned", "sandbox", "contributes"}


@pytest.fixture
def site(tmp_path: Path) -> ExtSite:
    return ExtSite(tmp_path)


def test_without_any_extension_the_list_is_empty_and_says_how_to_get_one(site: ExtSite) -> None:
    done = site.ext("list")

    assert (done.code, done.err) == (0, "") and "hilt ext install" in done.out
    assert site.json("list") == []


def test_the_list_starts_nothing_and_has_every_field_of_every_extension(site: ExtSite) -> None:
    site.install(canary("mine", version="1.2", permissions=["net"]))
    canary("placed").write(site.home / "extensions")
    canary("off", enabled=False).write(site.home / "extensions")
    canary("theirs").write(site.project / ".hilt" / "extensions")
    Made("bad", {"exec": 7}).write(site.home / "extensions")
    rows = {row["name"]: row for row in site.json("list")}
    site.ext("info", "mine")

    assert not list(site.folder.rglob("was-here"))
    assert list(rows) == ["mine", "off", "placed", "project:theirs", "bad"]
    assert all(row.keys() >= FIELDS for row in rows.values())
    told = {name: (row["state"], row["source"], row["enabled"], row["pinned"]) for name, row in rows.items()}
    assert told == {
        "mine": ("stopped", "user", True, True),
        "placed": ("stopped", "user", True, False),
        "off": ("disabled", "user", False, False),
        "project:theirs": ("untrusted", "project", True, False),
        "bad": ("failed", "user", True, False),
    }
    assert (rows["mine"]["version"], rows["mine"]["dialect"], rows["mine"]["sandbox"]) == ("1.2", "frames", "standard")
    assert rows["mine"]["contributes"] == {} and rows["placed"]["sandbox"] == "off"
    assert '"exec"' in rows["bad"]["reason"] and "hilt ext trust" in rows["project:theirs"]["reason"]


def test_what_one_contributes_is_known_from_its_last_run_and_a_failure_with_its_reason(site: ExtSite) -> None:
    tool("well", "register_command:go").write(site.home / "extensions")
    failing().write(site.home / "extensions")
    site.run("-p", "hi", *site.script(says("hello")))

    assert site.row("well")["contributes"] == {"tools": ["well"], "commands": ["go"]}
    broken = site.row("broken")
    assert broken["state"] == "failed" and "exited with code 3" in broken["reason"]
    assert site.ext("list").code == 0


def test_live_starts_each_in_turn_and_says_which_fail(site: ExtSite) -> None:
    tool("a", "register_command:go").write(site.home / "extensions")
    failing("b").write(site.home / "extensions")
    tool("c", enabled=False).write(site.home / "extensions")
    done = site.ext("list", "--live", "--json")

    a, b, c = json.loads(done.out)
    assert done.code == 1 and done.err == "starting a…\nstarting b…\n"
    assert (a["state"], a["contributes"]) == ("ready", {"tools": ["a"], "commands": ["go"]})
    assert b["state"] == "failed" and "exited with code 3" in b["reason"] and "leftpad" in b["reason"]
    assert c["state"] == "disabled"
    assert site.ext("list", "--live").out.splitlines()[0].split()[:3] == ["name", "version", "state"]


def test_the_table_has_a_line_for_each_and_its_reason_below_and_no_colour(site: ExtSite) -> None:
    tool("one", version="1.0").write(site.home / "extensions")
    tool("two", enabled=False).write(site.home / "extensions")
    done = site.ext("list")

    header, one, two, reason = done.out.splitlines()
    assert header.split() == ["name", "version", "state", "dialect", "source", "pinned", "sandbox", "offers"]
    assert one.split() == ["one", "1.0", "stopped", "frames", "user", "-", "off", "-"]
    assert two.split()[:3] == ["two", "-", "disabled"] and "manifest" in reason and "hilt ext enable two" in reason
    assert "\x1b" not in done.out


def test_text_in_a_manifest_cannot_pass_for_another_line_of_the_table(site: ExtSite) -> None:
    spoof = "1.0\nother  2.0  ready\x1b[2J\u202e"
    tool("one", version=spoof, description="fine\nsandbox     strict").write(site.home / "extensions")
    listed, told = site.ext("list"), site.ext("info", "one")

    assert len(listed.out.splitlines()) == 2 and "\x1b" not in listed.out and "\u202e" not in listed.out
    assert not [line for line in told.out.splitlines() if line.startswith("sandbox     strict")]
    assert "\x1b" not in told.out


def test_a_name_that_two_claim_is_a_conflict_that_the_list_tells(site: ExtSite) -> None:
    tool("same").write(site.home / "extensions")
    directory = tool("other").write(site.home / "extensions")
    (directory / "extension.json").write_text('{"name": "same", "exec": "sh"}')
    done = site.ext("list")

    assert done.code == 0 and "conflict" in done.err and str(directory) in done.err


def test_info_tells_rights_command_and_log(site: ExtSite) -> None:
    site.install(tool("one", permissions=["net", "env:GITHUB_TOKEN"], version="3"))
    site.ext("revoke", "one", "net")
    told = site.json("info", "one")
    text = site.ext("info", "one").out

    assert told["permissions"] == ["net", "env:GITHUB_TOKEN"] and told["grants"] == ["env:GITHUB_TOKEN"]
    assert told["revoked"] == ["net"] and told["log"].endswith("/logs/ext-one.log")
    assert told["command"][1:3] == ["-I", "-S"] and told["origin"] == str(site.folder / "sources" / "one")
    assert "permissions net (use the network)\n            env:GITHUB_TOKEN (see the" in text and " -I -S " in text


@pytest.mark.parametrize("data", [b'{"one": {"state": "', b'{"\xff": {}}', b'{"one": {"x": ' + b"[" * 100_000, b"[]"])
def test_a_damaged_note_of_the_last_run_is_as_good_as_none(site: ExtSite, data: bytes) -> None:
    tool("one").write(site.home / "extensions")
    (site.home / "seen.json").write_bytes(data)

    assert site.row("one")["state"] == "stopped"


def test_a_damaged_lock_keeps_what_was_installed_from_running_and_says_so(site: ExtSite) -> None:
    site.install(canary("one"))
    (site.home / "extensions.lock").write_text('{"format": 1, "entries":')
    run = site.run("-p", "hi", *site.script(says("hello")), "--ext", str(tool("flagged").write(site.folder / "x")))
    listed = site.ext("list")

    assert (run.code, run.out) == (0, "hello\n") and "extensions.lock is damaged" in run.err
    assert not list(site.folder.rglob("was-here"))
    assert listed.code == 1 and "extensions.lock is damaged" in listed.err and "hint:" in listed.err
