"""`hilt ext doctor` and `validate` find what is wrong, and say what to do about it."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from support.agent import says
from support.ext_site import SAYS_HELLO, ExtSite, canary, failing
from support.extending import Made, chaos, tool


@pytest.fixture
def site(tmp_path: Path) -> ExtSite:
    return ExtSite(tmp_path)


def findings(site: ExtSite, name: str = "one", code: int = 0) -> list[dict[str, Any]]:
    (found,) = site.json("doctor", name, code=code)["extensions"]
    assert found["name"] == name
    return list(found["findings"])


def worst(site: ExtSite, made: Made, *, code: int = 1) -> dict[str, Any]:
    """What doctor has to say first of one that is wrong, but for where the program of our tests lies."""
    made.write(site.home / "extensions")
    told = [one for one in findings(site, made.name, code) if "lies outside" not in one["message"]]
    return next(one for one in told if one["level"] in ("warn", "error"))


def test_a_healthy_one_is_found_so_and_the_machine_is_looked_at_too(site: ExtSite) -> None:
    tool("one", version="1", description="d", permissions=[]).write(site.home / "extensions")
    done = site.ext("doctor")

    assert done.code == 0 and done.err == "starting one…\n"
    assert "ok    handshake: it was ready after" in done.out and "ERROR" not in done.out
    assert "\nthis machine\n" in done.out and "sandbox" in done.out


def test_trying_one_out_keeps_our_own_keys_from_it_whatever_it_was_granted(site: ExtSite) -> None:
    program = "#!/bin/sh\nenv >&2\n" + SAYS_HELLO.partition("\n")[2]
    (Made("one", {"exec": "./run"}, {"run": program}).write(site.home / "extensions") / "run").chmod(0o755)
    site.home.joinpath("config.toml").write_text('[extensions.one]\ngrants = ["env"]\n')
    secrets = {"ANTHROPIC_API_KEY": "canary-of-ours", "OTHER_API_KEY": "canary-of-others"}
    site.ext("doctor", "one", env=secrets)

    log = (site.home / "logs" / "ext-one.log").read_text()
    assert "canary-of-others" in log and "canary-of-ours" not in log


def test_without_extensions_there_is_nothing_wrong(site: ExtSite) -> None:
    done = site.ext("doctor")

    assert done.code == 0 and "no extensions" in done.out


def test_a_runtime_that_is_missing(site: ExtSite) -> None:
    wrong = worst(site, Made("one", {"exec": "no-such-runtime"}))

    assert "no-such-runtime" in wrong["message"] and wrong["hint"]


def test_a_program_that_is_not_executable(site: ExtSite) -> None:
    made = Made("one", {"exec": "./run"}, {"run": "#!/bin/sh\n"})
    wrong = worst(site, made)

    assert "not executable" in wrong["message"] and "chmod +x" in wrong["hint"]


def test_a_shebang_that_leads_nowhere(site: ExtSite) -> None:
    made = Made("one", {"exec": "./run"}, {"run": "#!/no/such/shell\n"})
    (made.write(site.home / "extensions") / "run").chmod(0o755)
    wrong = [one for one in findings(site, code=1) if one["level"] == "error"]

    assert any("/no/such/shell" in one["message"] and one["hint"] for one in wrong)


def test_one_that_ends_before_its_hello_with_its_last_words(site: ExtSite) -> None:
    wrong = worst(site, failing("one"))

    assert wrong["check"] == "handshake" and "it exited with code 3" in wrong["message"]
    assert "leftpad" in wrong["message"] and "hilt ext logs one" in wrong["hint"]


def test_one_that_says_nothing_is_waited_for_no_longer_than_it_asked(site: ExtSite) -> None:
    begun = time.monotonic()
    wrong = worst(site, chaos("one", "mute", "hang", start_timeout_ms=300))

    assert time.monotonic() - begun < 8 and wrong["check"] == "handshake" and "hello" in wrong["message"]


def test_one_that_is_slow_to_start(site: ExtSite) -> None:
    wrong = worst(site, chaos("one", "sleep:2.1", "hello", "register_tool:t", "ready"), code=0)

    assert (wrong["level"], wrong["check"]) == ("warn", "start") and " ms to be ready" in wrong["message"]
    assert wrong["hint"]


def test_mistakes_in_what_it_says_now_and_in_its_last_run(site: ExtSite) -> None:
    garbage = {"on": "event:turn_start", "do": ["raw:garbage", "raw:more of it"]}
    talker = chaos("one", "hello", "register_tool:t", "subscribe:turn_start", "raw:garbage", "ready", garbage)
    talker.write(site.home / "extensions")
    site.run("-p", "hi", *site.script(says("hello")))
    told = [one["message"] for one in findings(site) if one["check"] == "protocol"]

    assert "1 of its lines could not be used, now" in told
    assert any(message.endswith("could not be used, when it last ran") for message in told)


def test_one_that_is_not_trusted_is_not_started_and_how_to_trust_it_is_said(site: ExtSite) -> None:
    canary("theirs").write(site.project / ".hilt" / "extensions")
    (trust,) = [one for one in findings(site, "project:theirs") if one["check"] == "trust"]

    assert trust["level"] == "warn" and "hilt ext trust" in trust["hint"]
    assert not list(site.folder.rglob("was-here"))


def test_one_that_is_switched_off_is_not_started_and_how_to_enable_it_is_said(site: ExtSite) -> None:
    canary("one").write(site.home / "extensions")
    site.ext("disable", "one")
    (off,) = [one for one in findings(site) if one["check"] == "enabled"]

    assert off["hint"] == "hilt ext enable one" and not list(site.folder.rglob("was-here"))


def test_one_that_is_not_as_it_was_installed(site: ExtSite) -> None:
    site.install(tool("one"))
    (site.home / "extensions" / "one" / "chaos.json").write_text("[]")
    (wrong,) = findings(site, code=1)

    assert "chaos.json changed" in wrong["message"] and "hilt ext update one" in wrong["hint"]


def test_what_is_about_no_single_extension_is_told_too(site: ExtSite) -> None:
    manifest = tool("same").write(site.home / "extensions") / "extension.json"
    (tool("other").write(site.home / "extensions") / "extension.json").write_text(manifest.read_text())
    done = site.ext("doctor")

    assert done.code == 1 and "conflict" in done.out


# Validate


def test_a_sound_extension_is_valid_and_nothing_of_it_is_started(site: ExtSite) -> None:
    place = site.make(canary("one", version="1", description="d", permissions=[]))
    told = site.json("validate", str(place))
    here = site.ext("validate", ".", cwd=str(place))

    assert told["valid"] is True and told["path"] == str(place)
    assert here.code == 0 and "ok    manifest" in here.out
    assert not list(site.folder.rglob("was-here"))


def test_a_manifest_with_errors_is_told_with_field_and_fix(site: ExtSite) -> None:
    place = site.make(Made("one", {"exec": 7, "priority": "high", "permisions": []}))
    done = site.ext("validate", str(place))

    assert done.code == 1
    assert "ERROR manifest" in done.out and '"exec"' in done.out and '"priority"' in done.out and "→ " in done.out
    assert 'did you mean "permissions"?' in done.out


def test_hidden_characters_and_links_that_leave_the_tree_are_told(site: ExtSite) -> None:
    place = site.make(tool("one"))
    (place / "main.py").write_text("access = 'user\u202e'\n")  # A33
    hidden = site.ext("validate", str(place))
    (place / "key").symlink_to("/etc/passwd")
    leaving = site.ext("validate", str(place))

    assert hidden.code == 0 and "main.py, line 1" in hidden.out and "\u202e" not in hidden.out
    assert leaving.code == 1 and "leaves the tree" in leaving.out


def test_a_single_file_is_validated_without_being_run(site: ExtSite) -> None:
    good = site.file("good.sh", "#!/bin/sh\ntouch was-here\n")
    bad = site.file("bad.py", "# /// hilt\n# permissions = 3\n# ///\n")
    told = site.ext("validate", str(bad))

    assert site.ext("validate", str(good)).code == 0 and not list(site.folder.rglob("was-here"))
    assert told.code == 1 and "bad.py, line 1" in told.out and "permissions" in told.out


@pytest.mark.parametrize("path", ["no/such", "", "~nobody-of-this-name/x"])
def test_a_path_that_leads_nowhere_is_a_usage_error(site: ExtSite, path: str) -> None:
    for verb in ("validate", "link"):
        done = site.ext(verb, path)
        assert done.code == 2 and "there is no such file" in done.err and "hint:" in done.err


def test_a_link_in_a_circle_is_told_like_anything_else_that_is_wrong(site: ExtSite) -> None:
    os.symlink("loop", site.project / "loop")
    for verb in ("validate", "link"):
        done = site.ext(verb, "loop")
        assert done.code in (1, 2) and "internal" not in done.err, (verb, done)
