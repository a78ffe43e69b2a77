"""`hilt ext install`, `update`, `remove` and `link`: shown, agreed to, done; or nothing is left behind."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from support.agent import calls, says
from support.ext_site import ExtSite, canary
from support.extending import Made, tool
from support.packages import tar_of


@pytest.fixture
def site(tmp_path: Path) -> ExtSite:
    return ExtSite(tmp_path)


def lock(site: ExtSite, name: str) -> dict[str, object]:
    entry: dict[str, object] = json.loads((site.home / "extensions.lock").read_text())["entries"][name]
    return entry


# Install


def test_without_a_terminal_and_without_yes_nothing_is_installed_and_the_usage_is_told(site: ExtSite) -> None:
    done = site.ext("install", str(site.make(canary("one"))))

    assert done.code == 2 and "--yes" in done.err
    assert site.left() == {} and not list(site.folder.rglob("was-here"))


def test_an_install_shows_what_it_is_about_and_the_extension_runs_afterwards(site: ExtSite) -> None:
    source = site.make(tool("one", version="1.5", permissions=["net", "env:GITHUB_TOKEN"], description="helps"))
    (source / "odd.txt").write_text("a\u202eb")
    done = site.ext("install", str(source), "--yes")
    run = site.run("--json", "go", *site.script(calls(("one", {})), says("done")))

    assert done.code == 0 and "installed one 1.5" in done.out
    for shown in (
        "one 1.5: helps",
        "chaos.py @chaos.json",
        "use the network  [net]",
        "the environment variable GITHUB_TOKEN  [env:GITHUB_TOKEN]",
        "standard:",
        "4 files, ",
        "odd.txt, line 1,",
        f"from      {source}",
    ):
        assert shown in done.err, shown
    assert [event["is_error"] for event in run.events if event["type"] == "tool_result"] == [False]
    assert lock(site, "one")["kind"] == "directory"
    assert 'grants = ["env:GITHUB_TOKEN"]' in (site.home / "config.toml").read_text()


def test_json_gives_what_was_installed_and_nothing_else_on_stdout(site: ExtSite) -> None:
    told = site.json("install", str(site.make(tool("one", version="2"))), "--yes")

    assert told["name"] == "one" and told["version"] == "2" and told["installed"] is True
    assert told["kind"] == "directory" and len(told["tree"]) == 64
    assert told["source"] == str(site.folder / "sources/one")


def test_the_directory_one_is_in_can_be_installed_by_a_dot(site: ExtSite) -> None:
    source = site.make(tool("one"))
    done = site.ext("install", ".", "--yes", cwd=str(source))

    assert done.code == 0 and site.row("one")["origin"] == str(source)


def test_what_is_wrong_with_it_here_is_shown_before_it_is_installed(site: ExtSite) -> None:
    done = site.ext("install", str(site.make(Made("one", {"exec": "no-such-program"}))), "--yes")

    assert done.code == 0 and "wrong     " in done.err and "no-such-program" in done.err
    assert ".staging" not in done.err


def test_that_it_is_large_is_told_and_not_called_wrong(site: ExtSite) -> None:
    source = site.make(tool("one"))
    with (source / "model.bin").open("wb") as file:
        file.truncate(110 * 1024 * 1024)
    done = site.ext("install", str(source), "--yes")

    assert done.code == 0 and "files, 110 MiB" in done.err
    assert not re.search(r"wrong .* MiB", done.err)


def test_what_was_granted_to_another_of_its_name_before_is_shown(site: ExtSite) -> None:
    site.configure('[extensions.one]\ngrants = ["env:OLD_TOKEN"]\nrevoked = ["net"]\n')
    done = site.ext("install", str(site.make(tool("one", permissions=[]))), "--yes")

    assert "[env:OLD_TOKEN]  (you granted it)" in done.err
    assert "may not   use the network  [net]  (you revoked it)" in done.err


def test_text_in_a_manifest_cannot_pass_for_a_line_of_what_is_shown(site: ExtSite) -> None:
    made = tool("one", description="fine\n  sandbox   strict")
    made.manifest["args"] = ["\n  may       nothing\x1b[1A"]
    done = site.ext("install", str(site.make(made)), "--yes")

    lines = done.err.splitlines()
    assert "            |   sandbox   strict" in lines and "            |   may       nothing‹U+001B›[1A'" in lines
    assert [line for line in lines if line.startswith("  may  ")] == [
        "  may       full access: it may do whatever you may, have your keys for every provider, and read and change "
        "the conversation (its manifest has no list of permissions)"
    ]


def test_a_second_install_of_a_name_is_refused_before_anybody_is_asked(site: ExtSite) -> None:
    site.install(tool("one"))
    before = site.left()
    done = site.ext("install", str(site.folder / "sources" / "one"))

    assert done.code == 1 and "installed already" in done.err and "hilt ext update one" in done.err
    assert site.left() == before


def test_what_the_user_put_there_is_never_replaced(site: ExtSite) -> None:
    tool("one").write(site.home / "extensions")
    before = site.left()
    done = site.ext("install", str(site.make(canary("one"))), "--yes")

    assert done.code == 1 and "hilt did not put it there" in done.err
    assert site.left() == before


@pytest.mark.parametrize(
    ("manifest", "told"),
    [
        ('{"name": "one", "exec": 7}', '"exec"'),
        ('{"name": "../up", "exec": "./run"}', '"name"'),
        ('{"name": "one", "exec": "./run", "permissions": ["everything"]}', "everything"),
        ('{"name":', "extension.json"),
    ],
)
def test_a_manifest_with_errors_is_refused_with_field_and_fix_and_leaves_nothing(
    site: ExtSite, manifest: str, told: str
) -> None:
    source = site.make(tool("one"))
    (source / "extension.json").write_text(manifest)
    done = site.ext("install", str(source), "--yes")

    assert done.code == 1 and told in done.err and "hint:" in done.err and ".staging" not in done.err
    assert site.left() == {}


def test_a_tree_that_is_refused_leaves_nothing(site: ExtSite) -> None:
    source = site.make(tool("one"))
    (source / "key").symlink_to("/etc/passwd")  # A9
    done = site.ext("install", str(source), "--yes")

    assert done.code == 1 and "key is a link" in done.err and "hint:" in done.err
    assert site.left() == {}


def test_an_archive_is_installed_and_a_hostile_one_leaves_nothing(site: ExtSite) -> None:
    manifest = json.dumps({"name": "one", "exec": "sh", "args": ["run.sh"]}).encode()
    good = tar_of(site.folder / "one.tar.gz", ("one/extension.json", manifest), ("one/run.sh", b"exit\n"))
    bad = tar_of(site.folder / "two.tar.gz", ("extension.json", manifest), ("../../evil", b"x"))  # A8
    refused = site.ext("install", str(bad), "--yes")

    assert refused.code == 1 and site.left() == {} and not list(site.folder.rglob("evil"))
    assert site.ext("install", str(good), "--yes").code == 0 and site.row("one")["pinned"]


def test_what_is_being_done_is_said_before_it_is_done(site: ExtSite) -> None:
    directory, repository = site.make(tool("a")), site.repository(tool("b")).path
    archive = tar_of(site.folder / "c.tgz", ("c/extension.json", b'{"name": "c", "exec": "sh"}'))
    for word, source in (
        (f"copying {directory}…", directory),
        (f"fetching {repository}…", f"{repository}@v1"),
        (f"unpacking {archive}…", archive),
    ):
        assert site.ext("install", str(source), "--yes").err.splitlines()[0] == word


@pytest.mark.parametrize("verb", ["install", "link"])
def test_a_place_whose_name_is_not_utf_8_is_refused_and_leaves_nothing(site: ExtSite, verb: str) -> None:
    place = site.make(tool("one"))
    odd = place.with_name(os.fsdecode(b"on\xffe"))
    place.rename(odd)
    done = site.ext(verb, ".", "--yes", cwd=str(odd))

    assert done.code == 1 and "not UTF-8" in done.err and "rename it" in done.err
    assert site.left() == {}


def test_what_was_revoked_is_only_told_as_what_it_may_not(site: ExtSite) -> None:
    site.configure('[extensions.one]\ngrants = ["net:a.example"]\nrevoked = ["net", "fs.read:/a"]\n')
    asked = ["net", "fs.read:/a", "fs.read:/b"]
    done = site.ext("install", str(site.make(tool("one", permissions=asked))), "--yes")

    assert [line for line in done.err.splitlines() if line.startswith("  may")] == [
        "  may       read files in /b  [fs.read:/b]",
        "  may not   use the network  [net]  (you revoked it)",
        "  may not   read files in /a  [fs.read:/a]  (you revoked it)",
    ]


def test_choices_that_cannot_be_kept_are_told_before_anything_is_installed(site: ExtSite) -> None:
    site.configure("extensions = {}\n")
    before = site.left()
    done = site.ext("install", str(site.make(tool("one", permissions=["env:TOKEN"]))), "--yes")

    assert done.code == 1 and 'grants = ["env:TOKEN"]' in done.err
    assert site.left() == before


def test_how_it_is_to_be_confined_can_be_said_and_is_kept(site: ExtSite) -> None:
    done = site.ext("install", str(site.make(tool("one"))), "--yes", "--sandbox", "strict")

    assert done.code == 0 and "sandbox   strict" in done.err
    assert site.row("one")["sandbox"] == "strict"


@pytest.mark.parametrize(
    "source",
    ["no/such/place", "", "ext::sh -c id", "--upload-pack=id", "file:///tmp/x", "http://example.org/x", "x\x1b[2J"],
)
def test_sources_that_are_none_are_refused_with_a_hint_and_leave_nothing(site: ExtSite, source: str) -> None:
    done = site.ext("install", "--yes", "--", source)

    assert done.code in (1, 2) and "hilt: error:" in done.err and "hint:" in done.err
    assert "\x1b" not in done.err and "Traceback" not in done.err
    assert site.left() == {}


# Git


def test_a_git_install_is_pinned_to_a_commit_and_a_tree(site: ExtSite) -> None:
    repository = site.repository(tool("one", version="1"))
    commit = repository.git("rev-parse", "HEAD").strip()
    done = site.ext("install", f"{repository.path}@v1", "--yes")

    entry, row = lock(site, "one"), site.row("one")
    assert done.code == 0 and f"pinned to commit {commit}" in done.out and f"commit    {commit}" in done.err
    assert "objects: 100% (" in done.err and "% (1/" not in done.err  # how far it is, without every step of it
    assert (entry["kind"], entry["commit"], entry["ref"]) == ("git", commit, "v1")
    assert row["pinned"] and row["commit"] == commit and row["origin"] == f"{repository.path}@v1"
    assert not (site.home / "extensions" / "one" / ".git").exists()
    assert commit[:9] in site.ext("list").out


def test_file_urls_are_taken_only_when_that_is_allowed(site: ExtSite) -> None:
    url = f"file://{site.repository(tool('one')).path}"
    refused = site.ext("install", url, "--yes")

    assert refused.code == 1 and "--allow-file" in refused.err and site.left() == {}
    assert site.ext("install", url, "--yes", "--allow-file").code == 0


def test_a_changed_tree_does_not_start_until_it_is_updated_and_the_others_run(site: ExtSite) -> None:
    site.install(tool("other"))
    repository = site.repository(canary("one"))
    site.ext("install", f"{repository.path}@v1", "--yes")
    place = site.home / "extensions" / "one"
    (place / "chaos.json").write_text((place / "chaos.json").read_text() + " ")
    script = site.script(calls(("other", {})), says("done"))
    run, ran, row = site.run("-p", "go", *script), (place / "was-here").exists(), site.row("one")
    update = site.ext("update", "one", "--yes")
    again = site.run("-p", "go", *script)

    assert (run.code, run.out, ran) == (0, "done\n", False) and "  ok\n" in run.err
    assert "one is not as it was installed: chaos.json changed" in run.err and "hilt ext update one" in run.err
    assert row["state"] == "failed" and "chaos.json changed" in row["reason"]
    assert update.code == 0 and "put right" in update.out and "  ~ chaos.json" in update.out
    assert "not as it was installed" not in again.err and (place / "was-here").exists()


def test_one_that_gave_itself_another_name_does_not_start_either(site: ExtSite) -> None:
    site.install(canary("one"))
    manifest = site.home / "extensions" / "one" / "extension.json"
    manifest.write_text(manifest.read_text().replace('"name": "one"', '"name": "two"'))
    run = site.run("-p", "hi", *site.script(says("hello")))

    assert (run.code, run.out) == (0, "hello\n") and "one is not as it was installed" in run.err
    assert "hilt ext update one" in run.err and not list(site.folder.rglob("was-here"))
    assert site.ext("update", "one", "--yes").code == 0 and site.row("one")["state"] == "stopped"


def test_a_tag_that_was_moved_is_noticed_and_what_it_changes_is_shown_before_it_is_taken(site: ExtSite) -> None:
    repository = site.repository(tool("one", version="1", permissions=["net"]))
    before = repository.git("rev-parse", "HEAD").strip()
    site.ext("install", f"{repository.path}@v1", "--yes")
    tool("one", version="2", permissions=["exec"]).write(repository.path.parent)
    (repository.path / "new.py").write_text("import os\n# a\u2028-b\x1b[2K\n")
    (repository.path / "blob.bin").write_bytes(b"\xff\x00")
    after = repository.commit()
    repository.git("tag", "--force", "v1")
    refused, untouched = site.ext("update", "one"), site.row("one")
    done = site.ext("update", "one", "--yes")

    assert refused.code == 2 and untouched["commit"] == before  # A6: nothing without a yes
    assert done.code == 0 and site.row("one")["commit"] == after and site.row("one")["version"] == "2"
    for told in (
        f"commit: {before} → {after}",
        "version: 1 → 2",
        "asks for more: run other programs  [exec]",
        "asks no longer: use the network  [net]",
        "  + new.py",
        "  ~ extension.json",
    ):
        assert told in done.err and told in done.out, told
    assert f"updated one to 2, pinned to commit {after}" in done.out
    assert "+import os\n+# a‹U+2028›-b‹U+001B›[2K\n" in done.err and "+++ after/new.py" in done.err
    assert "blob.bin: not shown" in done.err


def test_an_update_that_drops_its_list_of_permissions_asks_for_everything(site: ExtSite) -> None:
    site.install(tool("one", permissions=[]))
    site.make(tool("one"))
    told = site.json("update", "one", "--yes")

    assert told["updated"] is True and told["changes"]["full_access"] is True


def test_an_update_without_changes_changes_nothing(site: ExtSite) -> None:
    site.install(tool("one"))
    before = site.left()
    done = site.ext("update", "one")

    assert (done.code, done.out) == (0, "one is up to date\n")
    assert site.left() == before


def test_update_all_goes_on_after_one_that_cannot_be_updated(site: ExtSite) -> None:
    site.install(tool("a"), tool("b"), tool("c"))
    shutil.rmtree(site.folder / "sources" / "a")
    site.make(tool("c", version="2"))
    done = site.ext("update", "--all", "--yes", "--json")

    a, b, c = json.loads(done.out)
    assert done.code == 1
    assert (a["updated"], b["updated"], c["updated"]) == (False, False, True) and "sources/a" in a["error"]
    assert site.row("c")["version"] == "2"


def test_a_source_that_is_gone_is_told_with_what_to_do(site: ExtSite) -> None:
    archive = tar_of(site.folder / "c.tgz", ("c/extension.json", b'{"name": "c", "exec": "sh"}'))
    site.ext("install", str(archive), "--yes")
    archive.unlink()
    done = site.ext("update", "c")

    assert done.code == 1 and f"{archive}, where c came from, is gone" in done.err and "hilt ext remove c" in done.err


def test_what_an_extension_saved_beside_its_code_survives_an_update(site: ExtSite) -> None:
    site.install(tool("one"))
    (site.home / "extensions" / "one" / "state.json").write_text("precious")
    site.make(tool("one", version="2"))

    assert site.ext("update", "one", "--yes").code == 0
    assert (site.home / "extensions" / "one" / "state.json").read_text() == "precious"


@pytest.mark.parametrize("arguments", [["update"], ["update", "one", "--all"]])
def test_update_wants_either_a_name_or_all(site: ExtSite, arguments: list[str]) -> None:
    done = site.ext(*arguments)

    assert done.code == 2 and "--all" in done.err


# Remove


def test_remove_takes_away_what_was_installed_and_nothing_else(site: ExtSite) -> None:
    tool("placed").write(site.home / "extensions")
    before = site.left()
    site.install(tool("one"))
    asked = site.ext("remove", "one")
    done = site.ext("remove", "one", "--yes")

    assert asked.code == 2 and "--yes" in asked.err
    assert done.code == 0
    after = site.left()
    after.pop("extensions.lock")
    assert after == before


def test_what_hilt_did_not_install_is_not_removed(site: ExtSite) -> None:
    place = tool("placed").write(site.home / "extensions")
    before = site.left()
    done = site.ext("remove", "placed", "--yes")

    assert done.code == 1 and "not installed by hilt" in done.err and "hint:" in done.err
    assert site.left() == before and place.is_dir()


def test_files_that_it_saved_beside_its_code_are_named_before_they_go(site: ExtSite) -> None:
    site.install(tool("one"))
    (site.home / "extensions" / "one" / "state.json").write_text("precious")
    done = site.ext("remove", "one", "--yes")

    assert done.code == 0 and "state.json" in done.err


# Link


def test_a_linked_one_runs_as_it_is_at_any_time_and_only_the_link_is_removed(site: ExtSite) -> None:
    source = site.make(tool("one", permissions=["env:TOKEN"]))
    (source / ".venv").mkdir()
    (source / ".venv" / "python").symlink_to("/usr/bin/env")
    refused = site.ext("link", str(source))
    done = site.ext("link", ".", "--yes", cwd=str(source))
    (source / "chaos.json").write_text(json.dumps(["hello:one", "register_tool:changed", "ready"]))
    run = site.run("--json", "go", *site.script(calls(("changed", {})), says("done")))
    row = site.row("one")
    removed = site.ext("remove", "one", "--yes")

    assert refused.code == 2 and done.code == 0 and str(source) in done.out
    assert [event["is_error"] for event in run.events if event["type"] == "tool_result"] == [False]
    assert not row["pinned"] and row["origin"] == str(source)
    assert 'grants = ["env:TOKEN"]' in (site.home / "config.toml").read_text()
    assert removed.code == 0 and (source / "chaos.json").exists()
    assert not os.path.lexists(site.home / "extensions" / "one")


def test_a_second_link_is_refused_before_anybody_is_asked_and_how_to_undo_the_first_is_said(site: ExtSite) -> None:
    source = site.make(tool("one"))
    site.ext("link", str(source), "--yes")
    done = site.ext("link", str(source))

    assert done.code == 1 and f"is linked already, to {source}" in done.err and "hilt ext remove one" in done.err


def test_a_linked_one_is_not_updated(site: ExtSite) -> None:
    site.ext("link", str(site.make(tool("one"))), "--yes")
    done = site.ext("update", "one")

    assert done.code == 1 and "linked" in done.err
    assert site.ext("update", "--all").code == 0


def test_a_single_file_is_not_linked_but_installed(site: ExtSite) -> None:
    done = site.ext("link", str(site.file("one.sh")), "--yes")

    assert done.code == 2 and "not a directory" in done.err and "hilt ext install" in done.err
    assert site.left() == {}
