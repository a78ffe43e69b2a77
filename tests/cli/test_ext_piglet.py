"""Extensions of the jsonrpc dialect are installed, listed and looked at like any other."""

import sys
from pathlib import Path

import pytest

from support.ext_site import ExtSite

MANIFEST = """
name: pig
version: 0.3.0
description: Notes
runtime: python
entry: main.py
defaults:
  - {src: seed/a.md, dest: extensions/pig/a.md}
  - {src: seed/a.md, dest: deep/b.md}
"""


SPEAKS = """
import json, os, sys
{source}
print("good morning", flush=True)
for line in reader:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        tool = {{"name": "oink", "description": "Oinks", "parameters": {{"type": "object"}}}}
        for said in ({{"method": "register/tool", "params": tool}}, {{"id": asked["id"], "result": {{"name": "pig"}}}}):
            writer.write(json.dumps({{"jsonrpc": "2.0", **said}}) + "\\n")
            writer.flush()
"""
ON_3_AND_4 = "reader, writer = open(3), open(4, 'w')"
SOURCES = {
    "on 3 and 4, and says so": f"os.environ['PIGLET_FD']\n{ON_3_AND_4}",
    "on 3 and 4": ON_3_AND_4,
    "on stdin and stdout": "reader, writer = sys.stdin, sys.stdout",
}
"""Where it speaks."""


@pytest.fixture
def site(tmp_path: Path) -> ExtSite:
    return ExtSite(tmp_path)


def pig(site: ExtSite, manifest: str = MANIFEST, place: Path | None = None) -> Path:
    directory = place or site.folder / "sources" / "pig"
    (directory / "seed").mkdir(parents=True, exist_ok=True)
    (directory / "manifest.yaml").write_text(manifest)
    (directory / "main.py").write_text("import os, sys\nos.environ['PIGLET_FD']\nsys.exit(3)\n")
    (directory / "seed" / "a.md").write_text("from the author")
    return directory


def installed(site: ExtSite) -> str:
    done = site.ext("install", str(pig(site)), "--yes")
    assert done.code == 0, done
    return done.err + done.out


def test_what_is_shown_is_its_real_command_and_every_file_it_begins_with(site: ExtSite) -> None:
    said = installed(site)
    data = site.home / "data" / "pig"
    [runs] = [line for line in said.splitlines() if line.startswith("  runs")]
    assert runs.endswith(f"/python3 {site.home}/extensions/pig/main.py")
    assert f"  copies    seed/a.md to {data}/a.md, unless that exists" in said
    assert f"  copies    seed/a.md to {data}/deep/b.md, unless that exists" in said
    assert "  may       full access" in said and "not speak" not in said
    assert f"copied {data}/a.md" in said
    assert (data / "a.md").read_text() == (data / "deep" / "b.md").read_text() == "from the author"


def test_it_is_listed_as_one_that_would_run(site: ExtSite) -> None:
    installed(site)
    row = site.row("pig")
    assert (row["dialect"], row["state"], row["version"]) == ("jsonrpc", "stopped", "0.3.0") and "reason" not in row
    info = site.json("info", "pig")
    assert info["command"][-1] == f"{site.home}/extensions/pig/main.py"


def test_validate_finds_nothing_wrong_with_it(site: ExtSite) -> None:
    told = site.json("validate", str(pig(site)))
    assert told["valid"] and [one for one in told["findings"] if one["level"] in ("warn", "error")] == []


def test_what_the_user_made_of_the_files_survives_an_update_and_a_removal(site: ExtSite) -> None:
    installed(site)
    data = site.home / "data" / "pig"
    (data / "a.md").write_text("mine")
    pig(site, MANIFEST.replace("0.3.0", "0.4.0") + "  - {src: seed/a.md, dest: new.md}\n")
    done = site.ext("update", "pig", "--yes")
    assert done.code == 0 and f"copied {data}/new.md" in done.out
    assert (data / "a.md").read_text() == "mine"
    assert site.ext("remove", "pig", "--yes").code == 0
    assert (data / "a.md").read_text() == "mine"


@pytest.mark.parametrize("dest", ["../../config.toml", "/etc/x", "~/.bashrc"])
def test_one_that_would_put_files_elsewhere_is_not_installed_and_the_entry_is_named(site: ExtSite, dest: str) -> None:
    # A10
    bad = MANIFEST + f"  - {{src: seed/a.md, dest: {dest}}}\n"
    done = site.ext("install", str(pig(site, bad)), "--yes")
    assert done.code != 0 and "defaults, entry 3, has a dest that leaves its directory" in done.err
    assert not (site.home / "extensions" / "pig").exists() and not (site.home / "data" / "pig").exists()
    told = site.json("validate", str(pig(site, bad)), code=1)
    assert any("entry 3" in one["message"] for one in told["findings"] if one["level"] == "error")


def test_a_link_in_the_data_directory_is_told_and_the_extension_is_installed(site: ExtSite) -> None:
    outside = site.folder / "outside"
    outside.mkdir()
    data = site.home / "data" / "pig"
    data.mkdir(parents=True)
    (data / "deep").symlink_to(outside)
    said = installed(site)
    assert f"{data}/deep/b.md cannot be made" in said and [*outside.iterdir()] == []
    assert site.row("pig")["state"] == "stopped"


def test_what_is_imported_from_piglet_would_run_and_finds_what_lay_beside_it(site: ExtSite) -> None:
    pig(site, place=site.folder / ".config" / "piglet" / "extensions" / "pig")
    done = site.ext("import", "--from", "piglet", "--yes")
    assert done.code == 0 and "imported pig" in done.out and "copies" not in done.err
    assert site.row("pig")["state"] == "stopped"
    assert (site.home / "data" / "pig" / "seed" / "a.md").is_file()


def test_what_piglet_itself_installed_lacks_its_defaults_and_is_installed_all_the_same(site: ExtSite) -> None:
    directory = pig(site)
    (directory / "seed" / "a.md").unlink()
    done = site.ext("install", str(directory), "--yes")
    assert done.code == 0 and "wrong     defaults, entry 1, has a src that is not there" in done.err
    assert not (site.home / "data" / "pig").exists()


def test_a_grant_by_name_leaves_full_access_as_it_is(site: ExtSite) -> None:
    pig(site, place=site.home / "extensions" / "pig")
    assert site.ext("grant", "pig", "auth:openai").code == 0
    info = site.json("info", "pig")
    assert info["permissions"] == "full access" and info["grants"] == ["auth:openai"]
    assert site.row("pig")["sandbox"] == "off"


@pytest.mark.parametrize("permissions", ["", "permissions: []\n"], ids=["free", "confined"])
@pytest.mark.parametrize("where", SOURCES)
def test_wherever_it_speaks_it_comes_up_when_it_is_tried(site: ExtSite, where: str, permissions: str) -> None:
    directory = pig(site, f"name: pig\nruntime: {sys.executable}\nentry: main.py\n{permissions}")
    (directory / "main.py").write_text(SPEAKS.format(source=SOURCES[where]))
    assert site.ext("install", str(directory), "--yes").code == 0
    [row] = site.json("list", "--live")
    assert (row["state"], row["contributes"]) == ("ready", {"tools": ["oink"]}), row
    log = (site.home / "logs" / "ext-pig.log").read_text()
    assert "stdout: good morning\n" in log and "jsonrpc" not in log


def test_the_doctor_says_how_it_came_up(site: ExtSite) -> None:
    directory = pig(site)
    (directory / "main.py").write_text(SPEAKS.format(source=SOURCES["on stdin and stdout"]))
    assert site.ext("install", str(directory), "--yes").code == 0
    told = site.json("doctor", "pig")
    [handshake] = [one for one in told["extensions"][0]["findings"] if one["check"] == "handshake"]
    assert handshake["level"] == "ok"
