"""The checker of the documents must itself notice what is wrong."""

import os
from pathlib import Path

import pytest

from docs import console
from docs.console import Exchange, Scratch, exchanges_in, matches, run_exchanges
from docs.fences import fences_in


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    made = Scratch(tmp_path / "scratch")
    made.prepare()
    return made


@pytest.mark.parametrize(
    ("expected", "output"),
    [
        ("one\ntwo", "one\ntwo\n"),
        ("took …s", "took 0.1s\n"),
        ("one\n…\nfour", "one\ntwo\nthree\nfour\n"),
        ("one\n…", "one\n"),
        ("", "\n"),
        ("a.b*c", "a.b*c"),
    ],
)
def test_output_that_was_promised_matches(expected: str, output: str) -> None:
    assert matches(expected, output)


@pytest.mark.parametrize(
    ("expected", "output"),
    [
        ("one\ntwo", "one\n"),
        ("one", "one\ntwo\n"),
        ("took …s", "took\n0.1s\n"),
        ("one\n…\nfour", "one\ntwo\n"),
        ("", "surprise\n"),
        ("a.b", "axb"),
    ],
)
def test_other_output_does_not_match(expected: str, output: str) -> None:
    assert not matches(expected, output)


def test_a_console_block_is_cut_into_commands_and_what_they_print() -> None:
    assert exchanges_in("$ cat <<E\n> hello\n> E\nhello\n$ true\n") == [
        Exchange(1, "cat <<E\nhello\nE", "hello"),
        Exchange(5, "true", ""),
    ]


def test_commands_of_a_block_share_a_shell_and_see_the_exit_code_before_them(scratch: Scratch) -> None:
    block = exchanges_in("$ word=hilt\n$ (exit 7)\n$ echo $? $word\n$ echo oops >&2; printf unended\n")
    assert run_exchanges(block, scratch) == ["", "", "7 hilt\n", "oops\nunended"]


def test_a_command_that_ends_the_shell_leaves_the_rest_without_output(scratch: Scratch) -> None:
    assert run_exchanges(exchanges_in("$ exit 3\n$ echo never\n"), scratch) == [""]


def test_a_command_that_hangs_is_killed_with_all_it_started(scratch: Scratch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "_PATIENCE", 0.5)
    ran = scratch.run(["/bin/sh", "-c", "echo begun; sleep 1000 & wait"])
    assert ran.output.startswith("begun\n") and "[killed after 0.5 s]" in ran.output
    assert ran.code != 0


def test_a_reader_who_begins_has_no_keys(scratch: Scratch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "OPENAI_API_KEY", "sk-of-the-developer")
    assert "sk-of-the-developer" not in scratch.run(["env"]).output


def test_fences_know_their_place_their_language_and_their_mark() -> None:
    text = """# T

```sh
true
```

<!-- not run: installs -->
```sh
pip
```
<!-- file: a.py -->
  ```python
  x = 1
  ```
<!-- needs: go -->
```sh
go version
```
"""
    first, second, third, fourth = fences_in(Path("a.md"), text)
    assert (first.line, first.language, first.text, first.not_run) == (3, "sh", "true\n", None)
    assert (second.line, second.not_run) == (8, "installs")
    assert (third.line, third.saved_as, third.text) == (12, "a.py", "x = 1\n")
    assert (fourth.needs, fourth.saved_as, fourth.not_run) == ("go", "", None)


def test_a_fence_that_is_never_closed_is_reported_with_its_line() -> None:
    with pytest.raises(AssertionError, match=r"a\.md:2: "):
        list(fences_in(Path("a.md"), "text\n```sh\ntrue\n"))
