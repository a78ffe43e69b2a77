"""Whatever is typed behind `hilt ext`, the answer is a sentence and a hint, and nothing has changed."""

from pathlib import Path

import pytest

from hilt.cli.ext import run
from support.ext_site import ExtSite
from support.extending import tool

NAMES = ("info", "update", "remove", "enable", "disable", "logs", "doctor")
VERBS = (
    *("list", "info", "install", "update", "remove", "enable", "disable", "link", "logs", "validate"),
    *("grant", "revoke", "doctor", "import"),
)


@pytest.fixture
def site(tmp_path: Path) -> ExtSite:
    return ExtSite(tmp_path)


def test_without_a_verb_there_is_help_that_names_all_of_them(site: ExtSite) -> None:
    done = site.ext()

    assert (done.code, done.err) == (0, "") and all(f"\n    {verb} " in done.out for verb in VERBS)


@pytest.mark.parametrize(
    "arguments", [["frob"], ["list", "--frob"], ["info"], ["logs", "one", "-n", "x"], ["grant", "x"]]
)
def test_an_unknown_verb_or_flag_is_a_usage_error_with_a_hint(site: ExtSite, arguments: list[str]) -> None:
    done = site.ext(*arguments)

    assert done.code == 2 and "hilt: error:" in done.err and "hint: `hilt ext" in done.err and done.out == ""


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_takes_json_and_says_what_it_is_for(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(["ext", verb, "--help"])

    assert ended.value.code == 0 and "--json" in capsys.readouterr().out


@pytest.mark.parametrize("verb", [*NAMES, "grant", "revoke"])
def test_a_name_that_is_none_is_refused_by_every_verb_and_touches_nothing(site: ExtSite, verb: str) -> None:
    tool("placed").write(site.home / "extensions")
    tool("one").write(site.home)  # A10
    before = site.left()
    done = site.ext(verb, "--", "../one\x1b[2J\n", *(["net"] if verb in ("grant", "revoke") else []))

    assert done.code == 2 and done.out == ""
    assert "hilt: error:" in done.err and "hint:" in done.err
    assert "\x1b" not in done.err and "internal" not in done.err
    assert site.left() == before


@pytest.mark.parametrize("verb", NAMES)
def test_a_name_that_nobody_has_is_a_usage_error_with_a_hint(site: ExtSite, verb: str) -> None:
    done = site.ext(verb, "nosuch")

    assert done.code == 2 and "nosuch" in done.err and "hilt ext list" in done.err


@pytest.mark.parametrize("name", ["", "/etc", "x" * 5000])
def test_other_names_that_are_none_are_refused_too_in_a_few_words(site: ExtSite, name: str) -> None:
    done = site.ext("remove", name)

    assert done.code == 2 and "hint:" in done.err and len(done.err) < 500


def test_the_help_of_grant_names_the_permissions(site: ExtSite) -> None:
    assert "conversation:read" in site.ext("grant", "--help").out


@pytest.mark.parametrize("verb", ["info", "disable", "remove", "doctor", "update"])
def test_a_name_that_is_nearly_right_gets_the_right_one(site: ExtSite, verb: str) -> None:
    tool("weather").write(site.home / "extensions")

    assert 'did you mean "weather"?' in site.ext(verb, "wether").err
    assert "did you mean" not in site.ext(verb, "gradle").err


def test_one_of_a_project_is_pointed_out_by_its_whole_name(site: ExtSite) -> None:
    tool("one").write(site.project / ".hilt" / "extensions")

    assert 'did you mean "project:one"?' in site.ext("info", "one").err


@pytest.mark.parametrize("arguments", [["list"], ["disable", "one"], ["grant", "one", "net"]])
def test_a_damaged_configuration_is_told_and_left_as_it_is(site: ExtSite, arguments: list[str]) -> None:
    tool("one").write(site.home / "extensions")
    site.configure("[extensions.one\nenabled = true\n")
    before = site.left()
    done = site.ext(*arguments)

    assert done.code == 1 and "config.toml" in done.err
    assert site.left() == before


def test_a_configuration_that_cannot_be_changed_is_told_with_what_to_write(site: ExtSite) -> None:
    tool("one").write(site.home / "extensions")
    site.configure("extensions = { one = { enabled = true } }\n")
    before = site.left()
    done = site.ext("disable", "one")

    assert done.code == 1 and "[extensions.one]" in done.err and "enabled = false" in done.err
    assert site.left() == before
