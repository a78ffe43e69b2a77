"""`hilt ext enable`, `disable`, `grant` and `revoke`: kept in the user's file, and heeded from the next start on."""

from pathlib import Path

import pytest

from support.agent import calls, says
from support.ext_site import ExtSite, canary
from support.extending import chaos, tool

CONFIG = """\
# what I like
max_steps = 7  # enough

[extensions.one]  # the first
# no, not today
enabled = true   # was false once
"""


@pytest.fixture
def site(tmp_path: Path) -> ExtSite:
    return ExtSite(tmp_path)


def test_a_disabled_one_does_not_run_until_it_is_enabled_and_comments_stay(site: ExtSite) -> None:
    place = canary("one").write(site.home / "extensions")
    config = site.configure(CONFIG)
    disabled = site.ext("disable", "one")
    after = config.read_text()
    site.run("-p", "hi", *site.script(says("hello")))
    ran, row = (place / "was-here").exists(), site.row("one")
    enabled = site.json("enable", "one")
    site.run("-p", "hi", *site.script(says("hello")))

    assert (disabled.code, disabled.out) == (0, "one is disabled\n")
    assert after == CONFIG.replace("enabled = true ", "enabled = false ")
    assert not ran and (row["state"], row["enabled"]) == ("disabled", False) and "config.toml" in row["reason"]
    assert enabled == {"name": "one", "enabled": True} and config.read_text() == CONFIG
    assert (place / "was-here").exists()


def test_one_that_its_manifest_switches_off_can_be_enabled(site: ExtSite) -> None:
    tool("off", enabled=False).write(site.home / "extensions")

    assert site.ext("enable", "off").code == 0 and site.row("off")["state"] == "stopped"


def test_an_extension_of_a_project_is_disabled_by_its_whole_name(site: ExtSite) -> None:
    tool("theirs").write(site.project / ".hilt" / "extensions")

    assert site.ext("disable", "theirs").code == 2
    assert site.ext("disable", "project:theirs").code == 0
    assert '[extensions."project:theirs"]\nenabled = false\n' in (site.home / "config.toml").read_text()


def test_what_is_granted_is_had_and_what_is_revoked_is_not(site: ExtSite) -> None:
    place = chaos("one", "write_env:env.json", "hello", "ready").write(site.home / "extensions")

    def seen() -> bool:
        (place / "env.json").unlink(missing_ok=True)
        site.run("-p", "hi", *site.script(says("hello")), env={"GITHUB_TOKEN": "abc-123"})
        return "abc-123" in (place / "env.json").read_text()

    before = seen()
    granted = site.ext("grant", "one", "env:GITHUB_TOKEN")
    with_it = seen(), site.json("info", "one")["grants"]
    revoked = site.ext("revoke", "one", "env:GITHUB_TOKEN")
    without = seen(), site.json("info", "one")["revoked"]

    assert not before
    assert granted.code == 0 and "may now see the environment variable GITHUB_TOKEN" in granted.out
    assert with_it == (True, ["env:GITHUB_TOKEN"])
    assert revoked.code == 0 and "no longer" in revoked.out
    assert without == (False, ["env:GITHUB_TOKEN"])


def test_a_grant_takes_back_a_refusal_and_neither_is_kept_twice(site: ExtSite) -> None:
    site.install(tool("one"))
    for verb in ("revoke", "revoke", "grant", "grant"):
        assert site.ext(verb, "one", "net").code == 0

    text = (site.home / "config.toml").read_text()
    assert 'grants = ["net"]' in text and "revoked = []" in text


def test_a_grant_of_a_part_of_what_was_revoked_is_not_said_to_hold(site: ExtSite) -> None:
    tool("one", permissions=[]).write(site.home / "extensions")
    site.ext("revoke", "one", "fs.read")
    done = site.ext("grant", "one", "fs.read:/srv")

    assert done.code == 1 and "may now" not in done.out and "`hilt ext grant one fs.read` takes that back" in done.out
    assert site.json("grant", "one", "fs.read:/srv", code=1)["granted"] is False


def test_a_grant_for_one_that_only_a_flag_names_holds_and_that_none_is_installed_is_said(site: ExtSite) -> None:
    done = site.ext("grant", "flagged", "env:TOKEN_FOR_IT")
    flag = str(tool("flagged", permissions=[]).write(site.folder / "x"))
    script = site.script(calls(("flagged", {})), says("done"))
    run = site.run("-p", "go", *script, "--ext", flag, env={"TOKEN_FOR_IT": "abc"})

    assert done.code == 0 and "no flagged is installed" in done.out and run.code == 0
    assert 'grants = ["env:TOKEN_FOR_IT"]' in (site.home / "config.toml").read_text()


def test_what_is_granted_to_an_extension_of_a_project_holds_in_that_folder_alone(site: ExtSite) -> None:
    tool("theirs", permissions=[]).write(site.project / ".hilt" / "extensions")
    before = site.ext("grant", "project:theirs", "net")
    site.ext("trust", "--yes")
    done = site.ext("grant", "project:theirs", "net")

    assert before.code == 2 and "hilt ext trust" in before.err
    assert done.code == 0 and site.json("info", "project:theirs")["grants"] == ["net"]
    assert not (site.home / "config.toml").exists()


@pytest.mark.parametrize(
    ("verb", "permission"),
    [
        ("grant", "everything"),
        ("grant", ""),
        ("grant", "env:A B"),
        ("revoke", "fs.read:../x"),
        ("revoke", "net\x1b[2J"),
    ],
)
def test_a_permission_that_is_none_is_refused_with_the_list_of_them(site: ExtSite, verb: str, permission: str) -> None:
    tool("one").write(site.home / "extensions")
    before = site.left()
    done = site.ext(verb, "one", permission)

    assert done.code == 2 and "tools:call" in done.err and "\x1b" not in done.err
    assert done.err.count("fs.read[:PATH]") == 1
    assert site.left() == before


def test_what_an_argument_must_be_is_said(site: ExtSite) -> None:
    assert "it must be an absolute path, or one that begins with ~" in site.ext("grant", "one", "fs.write:src").err
    assert "it must be the name of a variable" in site.ext("grant", "one", "env:").err
