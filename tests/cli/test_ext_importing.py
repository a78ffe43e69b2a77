"""`hilt ext import`: what is installed for another agent is shown, and copied; theirs stays as it is."""

from pathlib import Path

import pytest

from support.ext_site import ExtSite, canary
from support.extending import Made, tool


@pytest.fixture
def site(tmp_path: Path) -> ExtSite:
    return ExtSite(tmp_path)


def zot(site: ExtSite) -> Path:
    return site.folder / ".local" / "state" / "zot" / "extensions"


def piglet(site: ExtSite, name: str, **fields: str) -> Path:
    place = site.folder / ".config" / "piglet" / "extensions" / name
    place.mkdir(parents=True)
    lines = [f"name: {name}", "runtime: sh", "entry: main.sh", *(f"{key}: {value}" for key, value in fields.items())]
    (place / "manifest.yaml").write_text("\n".join(lines) + "\n")
    (place / "main.sh").write_text("exit 0\n")
    return place


def contents(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def test_what_is_installed_for_zot_is_shown_and_copied_and_stays_where_it_was(site: ExtSite) -> None:
    canary("one", version="1").write(zot(site))
    tool("two").write(zot(site))
    before = contents(zot(site))
    refused, nothing = site.ext("import", "--from", "zot"), site.left()
    done = site.ext("import", "--from", "zot", "--yes")

    assert refused.code == 2 and nothing == {} and "Copy one, two" in refused.err
    assert done.code == 0 and done.out == "imported one\nimported two\n"
    assert "one 1\n" in done.err and "  runs      " in done.err and "full access" in done.err
    assert contents(zot(site)) == before and not list(site.folder.rglob("was-here"))
    assert [(row["name"], row["pinned"]) for row in site.json("list")] == [("one", True), ("two", True)]


@pytest.mark.parametrize("variable", ["ZOT_HOME", "XDG_STATE_HOME"])
def test_it_is_looked_for_where_that_agent_looks(site: ExtSite, variable: str) -> None:
    elsewhere = site.folder / "elsewhere"
    tool("one").write(elsewhere / "extensions" if variable == "ZOT_HOME" else elsewhere / "zot" / "extensions")
    done = site.json("import", "--from", "zot", "--yes", env={variable: str(elsewhere)})

    assert done["imported"] == ["one"]


def test_what_is_switched_off_for_piglet_is_so_here(site: ExtSite) -> None:
    piglet(site, "on", version="'2'")
    piglet(site, "off")
    (site.folder / ".config" / "piglet" / "config.yaml").write_text("disabled_extensions:\n  - off\n")
    done = site.ext("import", "--from", "piglet", "--yes")

    assert done.code == 0 and "imported on\n" in done.out and "imported off (switched off" in done.out
    assert "[extensions.off]\nenabled = false" in (site.home / "config.toml").read_text()
    assert site.row("on")["dialect"] == "jsonrpc" and site.row("on")["version"] == "2"


@pytest.mark.parametrize("config", ["disabled_extensions: [off", "- off", "disabled_extensions: 7"])
def test_where_nobody_can_tell_what_is_switched_off_nothing_is_imported(site: ExtSite, config: str) -> None:
    piglet(site, "off")
    file = site.folder / ".config" / "piglet" / "config.yaml"
    file.write_text(config)
    refused = site.ext("import", "--from", "piglet", "--yes")
    file.write_text("")
    done = site.ext("import", "--from", "piglet", "--yes")

    assert refused.code == 1 and str(file) in refused.err and "hint: correct it" in refused.err
    assert done.out == "imported off\n"  # so it was not before


def test_what_one_of_piglet_kept_beside_its_code_is_found_where_it_keeps_things_here(site: ExtSite) -> None:
    place = piglet(site, "notes")
    for kept in ("notes.md", "facts/one.jsonl"):
        (place / kept).parent.mkdir(exist_ok=True)
        (place / kept).write_text("kept")
    for code in ("package.json", "node_modules/x.json", ".git/config.json", "lib.py"):
        (place / code).parent.mkdir(exist_ok=True)
        (place / code).write_text("code")
    (site.home / "data" / "notes").mkdir(parents=True)
    (site.home / "data" / "notes" / "notes.md").write_text("mine")
    done = site.ext("import", "--from", "piglet", "--yes")

    assert done.code == 0
    assert contents(site.home / "data" / "notes") == {"notes.md": b"mine", "facts/one.jsonl": b"kept"}


def test_one_that_cannot_be_copied_is_told_and_the_others_are(site: ExtSite) -> None:
    tool("good").write(zot(site))
    Made("bad", {"exec": 7}).write(zot(site))
    (tool("leaving").write(zot(site)) / "key").symlink_to("/etc/passwd")  # A9
    tool("taken").write(zot(site))
    tool("taken").write(site.home / "extensions")
    (tool("twin").write(zot(site)) / "extension.json").write_text('{"name": "good", "exec": "sh"}')
    told = site.json("import", "--from", "zot", "--yes")

    assert told["imported"] == ["good"]
    for name, reason in (("bad", '"exec"'), ("leaving", "leaves the tree"), ("taken", "already"), ("good", "already")):
        assert any(problem.startswith(f"{name}: ") and reason in problem for problem in told["problems"]), name


def test_a_second_import_asks_nothing_and_copies_nothing_and_says_why(site: ExtSite) -> None:
    tool("one").write(zot(site))
    site.ext("import", "--from", "zot", "--yes")
    before = site.left()
    again = site.ext("import", "--from", "zot")

    assert again.code == 1 and "not imported: one:" in again.out and "already" in again.out
    assert site.left() == before


@pytest.mark.parametrize("origin", ["zot", "piglet"])
def test_where_there_is_nothing_to_copy_the_place_is_named(site: ExtSite, origin: str) -> None:
    done = site.ext("import", "--from", origin)

    assert done.code == 0 and f"{origin} has no extensions here: {site.folder}" in done.out


@pytest.mark.parametrize("arguments", [[], ["--from", "emacs"]])
def test_from_whom_must_be_said(site: ExtSite, arguments: list[str]) -> None:
    done = site.ext("import", *arguments)

    assert done.code == 2 and "--from" in done.err
