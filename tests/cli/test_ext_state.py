"""What an extension keeps beside its code, as zot's do: it may change that, and nothing that it runs by."""

import shlex
import sys
from pathlib import Path

import pytest

from support.ext_site import ExtSite
from support.extending import Made

PINS = """
import json, os, sys

import helper

def send(**frame):
    print(json.dumps(frame), flush=True)

send(type="hello", name="pins", version="1", capabilities=["commands"])
send(type="register_command", name="pin", description="pin a line")
send(type="ready")
for line in sys.stdin:
    frame = json.loads(line)
    if frame["type"] == "hello_ack":
        data = frame["data_dir"]
    elif frame["type"] == "command_invoked":
        if os.path.exists(os.path.join(data, "inbox.json")):
            os.remove(os.path.join(data, "inbox.json"))
        file = os.path.join(data, "pins.txt")
        with open(file, "a") as pins:
            print(frame["args"], file=pins)
        send(type="command_response", id=frame["id"], action="display", display=open(file).read())
"""
"""One of zot's, unmodified: it knows of no directory but its own."""


@pytest.fixture
def site(tmp_path: Path) -> ExtSite:
    return ExtSite(tmp_path)


def pins(site: ExtSite, **manifest: object) -> Path:
    files = {"pins.py": PINS, "helper.py": "", "pins.txt": "from zot\n", "inbox.json": "[]"}
    made = Made("pins", {"exec": sys.executable, "args": ["-S", "-E", "pins.py"], "version": "1", **manifest}, files)
    return made.write(site.folder / ".local" / "state" / "zot" / "extensions")


def pin(site: ExtSite, line: str) -> str:
    done = site.ext("run", "pins", "/pin", line)
    assert done.code == 0, done
    return done.out


def test_one_from_zot_goes_on_with_what_it_kept_beside_its_code_and_its_code_stays_pinned(site: ExtSite) -> None:
    theirs, place = pins(site), site.home / "extensions" / "pins"
    done = site.ext("import", "--from", "zot", "--yes")
    assert done.out == "imported pins\n"
    assert "  state     pins.txt, which it may change: it is not pinned\n" in done.err and "--state PATH" in done.err

    assert pin(site, "one") == "from zot\none\n" and pin(site, "two") == "from zot\none\ntwo\n"
    assert site.json("info", "pins")["unpinned"] == ["pins.txt"] and (theirs / "pins.txt").read_text() == "from zot\n"

    (theirs / "pins.txt").write_text("zot went on\n")
    (theirs / "helper.py").write_text("# 2\n")
    updated = site.ext("update", "pins", "--yes")
    assert "  ~ helper.py\n" in updated.out and "pins.txt" not in updated.out and "kept aside" not in updated.out
    assert pin(site, "three") == "from zot\none\ntwo\nthree\n"

    (place / "helper.py").write_text("evil")
    (place / "pins.txt").chmod(0o755)
    refused = site.ext("run", "pins", "/pin", "four")
    assert refused.code != 0 and "helper.py changed; pins.txt added" in refused.err and "--state" not in refused.err


def test_one_that_changes_a_file_of_its_package_is_told_a_way_out_that_keeps_what_it_wrote(site: ExtSite) -> None:
    theirs = pins(site)
    assert site.ext("install", str(theirs), "--yes").code == 0
    pin(site, "one")
    refused = site.ext("run", "pins", "/pin", "two")
    way_out = "hilt ext update pins --state pins.txt --state inbox.json"
    assert refused.code != 0 and "pins.txt changed; inbox.json gone" in refused.err and f"`{way_out}`" in refused.err

    assert site.ext("update", "--all", "--state", "pins.txt").code == 2
    done = site.ext(*shlex.split(way_out)[2:], "--yes")
    assert done.code == 0 and "its own to change from now on: inbox.json\n" in done.out and "kept aside" not in done.out
    assert pin(site, "two") == "from zot\none\ntwo\n"


@pytest.mark.parametrize("manifest", [{"permissions": []}, {"data_dir": "separate"}])
def test_one_from_zot_that_has_its_data_apart_here_finds_it_there(site: ExtSite, manifest: dict[str, object]) -> None:
    pins(site, **manifest)
    site.ext("import", "--from", "zot", "--yes")

    assert (site.home / "data" / "pins" / "pins.txt").read_text() == "from zot\n"
    assert pin(site, "one") == "from zot\none\n"
    assert (site.home / "extensions" / "pins" / "pins.txt").read_text() == "from zot\n"


@pytest.mark.parametrize(
    ("named", "why"), [("pins.py", "stays pinned"), ("extension.json", "stays pinned"), ("../x", "is not among its")]
)
def test_code_is_not_left_to_it_whoever_names_it(site: ExtSite, named: str, why: str) -> None:
    done = site.ext("install", str(pins(site)), "--yes", "--state", named)

    assert done.code == 1 and named in done.err and why in done.err and "hint: name a file" in done.err
    assert site.left() == {}
