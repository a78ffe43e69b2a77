"""`hilt ext logs` shows what an extension said, made harmless, and goes on as more comes."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.agent import says
from support.ext_site import ExtSite
from support.extending import chaos
from support.hilt_process import DEADLINE


@pytest.fixture
def site(tmp_path: Path) -> ExtSite:
    return ExtSite(tmp_path)


@contextmanager
def following(site: ExtSite, *flags: str) -> Iterator["subprocess.Popen[bytes]"]:
    with site.started("ext", "logs", "one", "-f", *flags) as process:
        yield process


def line(process: "subprocess.Popen[bytes]") -> str:
    """The next one; a test that waits for one that never comes is ended from outside."""
    assert process.stdout
    return process.stdout.readline().decode().rstrip("\n")


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_what_one_that_was_only_ever_named_by_a_flag_said_is_there(site: ExtSite) -> None:
    flagged = chaos("flagged", "log:my first words", "hello", "ready").write(site.folder / "x")
    site.run("-p", "hi", *site.script(says("hello")), "--ext", str(flagged))
    done = site.ext("logs", "flagged")

    assert done.code == 0 and "my first words" in done.out.splitlines()
    assert "my first words" in site.json("logs", "flagged")["lines"]


def test_escape_sequences_do_not_reach_the_terminal(site: ExtSite) -> None:
    site.log("one", b"\x1b]52;c;aGk=\x07copied\x1b[2J \xc2\x9b31mred \xe2\x80\xaegnp\xff\x1b[31mend\n")  # A19
    done = site.ext("logs", "one")

    assert not set(done.out) & {"\x1b", "\x07", "\x9b", "\u202e"}
    assert "copied" in done.out and "‹U+202E›gnp\ufffd" in done.out and "end\n" in done.out


def test_only_the_last_lines_are_shown_also_just_after_the_log_was_begun_anew(site: ExtSite) -> None:
    path = site.log("one", b"d\ne\n")
    path.with_name("ext-one.log.1").write_bytes(b"a\nb\nc\n")

    assert site.ext("logs", "one", "-n", "3").out == "c\nd\ne\n"
    assert site.ext("logs", "one", "-n", "0").out == "a\nb\nc\nd\ne\n"


def test_lines_end_where_lines_end(site: ExtSite) -> None:
    site.log("one", "a\u2028b\x0cc\x85d\r\nlast".encode())

    assert site.json("logs", "one")["lines"] == ["a\u2028b\x0cc\x85d\r", "last"]


def test_following_goes_on_as_more_comes_in_whole_lines_and_made_harmless(site: ExtSite) -> None:
    path = site.log("one", b"first\nhal")
    with following(site) as process:
        assert line(process) == "first"
        append(path, b"f\n\x1b[2Jnext\n")
        assert (line(process), line(process)) == ("half", "next")


def test_following_survives_that_the_log_is_begun_anew_and_loses_nothing(site: ExtSite) -> None:
    path = site.log("one", b"first\n")
    with following(site) as process:
        assert line(process) == "first"
        process.send_signal(signal.SIGSTOP)  # whatever happens now, it sees only afterwards
        append(path, b"before\n")
        path.replace(path.with_name("ext-one.log.1"))
        path.write_bytes(b"after\n")
        process.send_signal(signal.SIGCONT)
        assert (line(process), line(process)) == ("before", "after")
        append(path, b"more\n")
        assert line(process) == "more"
        os.truncate(path, 0)
        append(path, b"anew\n")
        assert line(process) == "anew"


def test_following_as_json_gives_a_line_of_json_for_each(site: ExtSite) -> None:
    site.log("one", b"a\n\x1bb\n")
    with following(site, "--json") as process:
        assert [json.loads(line(process)) for _ in range(2)] == [{"line": "a"}, {"line": "\x1bb"}]


def test_ctrl_c_ends_it_with_130_and_without_a_word(site: ExtSite) -> None:
    site.log("one", b"first\n")
    with following(site) as process:
        line(process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=DEADLINE)
    assert (process.returncode, out, err) == (130, b"", b"")


def test_following_ends_when_nobody_reads_it_any_more_though_nothing_comes(site: ExtSite) -> None:
    site.log("one", b"first\n")
    with following(site) as process:
        line(process)
        assert process.stdout and process.stderr
        process.stdout.close()
        assert (process.wait(DEADLINE), process.stderr.read()) == (0, b"")


def test_a_name_cannot_lead_out_of_the_logs(site: ExtSite) -> None:
    site.log("x/inner", b"")
    (site.home / "secret.log").write_text("secret\n")
    done = site.ext("logs", "x/../../secret")  # A10

    assert done.code == 2 and done.out == "" and "there is no extension" in done.err


@pytest.mark.parametrize("flags", [[], ["-f"]])
def test_one_without_a_log_is_told_at_once(site: ExtSite, flags: list[str]) -> None:
    done = site.ext("logs", "one", *flags)

    assert done.code == 2 and "there is no log of one" in done.err and "hint:" in done.err
