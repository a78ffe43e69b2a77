"""`hilt ext conformance`: a score with reasons, of an extension or of a host."""

import json
from pathlib import Path

import pytest

from authoring.actors import frames
from hilt.authoring.hosts import command_line
from hilt.cli.ext import run
from hilt.errors import UsageError
from support.ext_site import ExtSite
from support.hilt_process import living_in

HOST = "hilt rpc --provider script --script {script} --ext {ext}"


@pytest.fixture
def site(tmp_path: Path) -> ExtSite:
    return ExtSite(tmp_path)


def test_a_rule_that_must_be_kept_decides_the_exit_code_and_is_explained(site: ExtSite) -> None:
    frames(site.project, "once")
    done = site.ext("conformance", "actor", "--call", 'add={"a":1,"b":2}')

    assert done.code == 1
    assert done.out.startswith("actor (frames): 25 of 26 rules\n\nmust  once: Each question is answered once")
    assert "was answered 2 times" in done.out and "      why: " in done.out and "      fix: " in done.out
    assert "not applicable: kinds" in done.out


def test_one_that_only_should_be_kept_does_not(site: ExtSite, capsys: pytest.CaptureFixture[str]) -> None:
    frames(site.project, "descriptions")
    with living_in(site):
        assert run(["ext", "conformance", "actor", "--json"]) == 0

    told = json.loads(capsys.readouterr().out)
    assert (told["conforms"], told["applicable"] - told["passed"]) == (True, 1)
    [failed] = [rule for rule in told["rules"] if rule["state"] == "failed"]
    assert (failed["rule"], failed["level"]) == ("descriptions", "should") and failed["why"] and failed["fix"]


def test_a_host_is_played_to_and_scored_by_need(site: ExtSite) -> None:
    flags = ("--only", "guards-in-order", "--only", "jsonrpc/tool-text", "--only", "jsonrpc/tool-progress")
    done = site.ext("conformance", "--host", HOST, *flags, "--without", "tool_progress")

    assert done.code == 0, done
    assert "basic                    1 of 1\n" in done.out and "tool_progress            left out\n" in done.out
    assert done.out.endswith("2 of 2 conversations, 1 left out\n")


def test_a_host_that_does_otherwise_fails_with_the_line_that_it_does_not_keep(site: ExtSite) -> None:
    done = site.ext("conformance", "--host", "sh -c 'echo no >&2; exit 3' {ext}", "--only", "jsonrpc/tool-text")

    assert done.code == 1
    assert (
        "FAIL  jsonrpc/tool-text" in done.out and "the host exited with code 3 before the end\n        no\n" in done.out
    )


WRONG = [
    ((), "name an extension, or a host"),
    (("actor", "--host", HOST), "name an extension, or a host"),
    (("actor", "--without", "raw"), "go with --host"),
    (("--host", HOST, "--call", "x"), "--call goes with an extension"),
    (("--host", "hilt rpc"), "there is no {ext} in it"),
    (("--host", "'{ext}"), "quotation"),
    (("--host", HOST, "--without", "wings"), "nothing needs that"),
    (("--host", HOST, "--only", "wings"), "no conversation is called so"),
    (("actor", "--call", "add={"), "--call add: no JSON"),
    (("nowhere",), "there is no such file"),
]


def test_what_cannot_be_meant_is_an_error_with_a_hint(site: ExtSite) -> None:
    frames(site.project)
    with living_in(site):
        for words, told in WRONG:
            with pytest.raises(UsageError) as caught:
                run(["ext", "conformance", *words])
            assert told in caught.value.message and caught.value.hint


def test_the_words_about_an_extension_are_said_for_each() -> None:
    made = command_line(["x", "--ext", "{ext}", "--e={ext}", "{script}"], [Path("/a"), Path("/b")], Path("/s"))

    assert made == ["x", "--ext", "/a", "--ext", "/b", "--e=/a", "--e=/b", "/s"]
