"""`hilt ext new`: what it makes works at once, in every language and of every kind, and nothing is overwritten."""

import json
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hilt.authoring.scaffold import KINDS, LANGUAGES, Kind, Language
from support import golang
from support.ext_site import ExtSite

_NEEDS = {"typescript": "node", "go": "go", "sh": "jq"}
_TESTED = {"python": 2, "typescript": 2, "go": 2, "sh": 1}
"""The fixture, and the test in the language itself."""


@pytest.fixture
def site(tmp_path: Path) -> ExtSite:
    return ExtSite(tmp_path, **golang.ENVIRONMENT)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_made_passes_its_tests_whatever_its_kind(language: Language, site: ExtSite) -> None:
    if language in _NEEDS and not shutil.which(_NEEDS[language]):
        pytest.skip(f"{_NEEDS[language]} is not installed")
    if language == "go":
        golang.warmed()

    def made_and_tested(kind: Kind) -> Any:
        made = site.json("new", f"my-{kind}", "--lang", language, "--kind", kind)
        assert made["next"][0] == f"cd my-{kind}"
        if language == "go":
            assert _files(Path(made["directory"], "hilt-sdk")) <= _files(golang.SDK)
            golang.use_ours(Path(made["directory"]))
        return site.json("test", f"my-{kind}")

    with ThreadPoolExecutor(2) as pool:
        for kind, told in zip(KINDS, pool.map(made_and_tested, KINDS), strict=True):
            outcomes = [one["state"] for one in told["outcomes"]]
            assert outcomes == ["passed"] * _TESTED[language], (kind, told)


def _files(folder: Path) -> set[tuple[str, bytes]]:
    return {(str(path.relative_to(folder)), path.read_bytes()) for path in folder.rglob("*") if path.is_file()}


def test_what_it_says_to_do_next_works_word_for_word(site: ExtSite) -> None:
    told = site.ext("new", "word-count")
    lines = told.out.splitlines()
    steps = [line.strip() for line in lines[lines.index("next:") + 1 :]]
    assert steps[0] == "cd word-count" and steps[-1] == "hilt ext dev ."
    done = site.shell('hilt() { command "$@"; }\n' + _with_hilt(steps[:-1]))
    assert done.code == 0, done
    assert "2 passed" in done.out and "hey hey hey" in done.out


def _with_hilt(steps: list[str]) -> str:
    """The steps as a script in which hilt is the one under test."""
    return "\n".join(f'"$@" {step.removeprefix("hilt ")}' if step.startswith("hilt ") else step for step in steps)


def test_each_kind_shows_what_it_is_for(site: ExtSite) -> None:
    shown = {
        "guard": "is not allowed here",
        "panel": "count: 0",
        "provider": "good morning",
        "command": "hello, Ada",
    }
    for kind, words in shown.items():
        next_ = site.json("new", f"my-{kind}", "--kind", kind)["next"][2]
        done = site.shell(f"cd my-{kind} && {_with_hilt([next_])}")
        assert words in done.out + done.err, (kind, done)


def test_nothing_is_overwritten(site: ExtSite) -> None:
    kept = site.project / "mine"
    kept.mkdir()
    (kept / "notes.txt").write_text("mine")
    done = site.ext("new", "mine")
    assert done.code == 2 and "exists already" in done.err
    assert [path.name for path in kept.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("name", ["", "Weather", "my weather", "../up", "-x", "a" * 41, "1st", "a--b"])
def test_a_name_that_cannot_be_one_is_refused_with_an_example(name: str, site: ExtSite) -> None:
    done = site.ext("new", "--lang=python", "--", name) if name.startswith("-") else site.ext("new", name)
    assert done.code == 2 and "word-count" in done.err, done
    assert list(site.project.iterdir()) == []


def test_a_module_never_hides_one_of_the_languages_own(site: ExtSite) -> None:
    """`json.py` beside a program would be imported in place of the real one."""
    made = site.json("new", "json")
    assert "json_extension.py" in made["files"] and "json.py" not in made["files"]
    assert site.ext("test", "json").code == 0


def test_it_says_what_is_missing_to_run_it(site: ExtSite) -> None:
    done = site.ext("new", "gopher", "--lang", "go", env={"PATH": "/nowhere"})
    assert done.code == 0 and "go is not installed here: this needs Go 1.22" in done.out


def test_the_manifest_asks_for_no_more_than_it_needs(site: ExtSite) -> None:
    asked = {}
    for kind in KINDS:
        site.json("new", f"my-{kind}", "--kind", kind)
        asked[kind] = json.loads((site.project / f"my-{kind}" / "extension.json").read_text())
    assert {kind: one["permissions"] for kind, one in asked.items() if one["permissions"]} == {
        "provider": ["conversation:read", "conversation:write", "tools:call"]
    }
    assert asked["guard"]["guard"]["on_failure"] == "block"


def test_what_is_made_is_tidy(site: ExtSite) -> None:
    """As the language's own tools would have it."""
    for language, check in {"python": ["ruff", "check", "-q", "."], "go": ["gofmt", "-l", "."]}.items():
        if shutil.which(check[0]):
            for kind in KINDS:
                site.json("new", f"{language}-{kind}", "--lang", language, "--kind", kind)
                place = site.project / f"{language}-{kind}"
                done = subprocess.run(check, cwd=place, capture_output=True, text=True, timeout=30)
                assert (done.returncode, done.stdout) == (0, ""), done.stdout
