"""`hilt ext dev`: an author at work, in a pipe and at a terminal, with an extension that changes under them."""

import json
from pathlib import Path
from typing import Any

import pexpect
import pytest

from hilt.cli.ext.growing import Growing
from support.ext_site import ExtSite
from support.extending import chaos, tool

ASKS = 'host_request:{"id":"q","method":"host/askUser","params":{"prompt":"Which?","choices":["red","blue"]}}'


@pytest.fixture
def site(tmp_path: Path) -> ExtSite:
    return ExtSite(tmp_path)


def script(answer: str) -> list[Any]:
    return [
        "hello:dev",
        "register_command:hi",
        "register_command:slow",
        {"on": "command_invoked", "match": {"name": "slow"}, "do": "hang"},
        {"on": "command_invoked", "do": f"answer:{answer}"},
        "ready",
    ]


def save(directory: Path, items: list[Any]) -> None:
    (directory / "chaos.json").write_text(json.dumps(items))
    (directory / "saved.py").write_text(f"# {items}\n")  # data alone is no reason to start it anew


def test_lines_from_a_pipe_are_answered_with_frames_and_log_beside_them(site: ExtSite) -> None:
    asking = {"on": "command_invoked", "match": {"args": "ask"}, "do": [ASKS, "await:host_response", "answer:thanks"]}
    made = chaos(
        "dev",
        "log:awake sk-1234567890",
        "hello",
        f"record:{site.folder / 'heard'}",
        "register_command:hi",
        "register_tool:t",
        asking,
        {"on": "command_invoked", "do": ["notify:see hunter2-hunter2", "answer:hello \x1b]0;x\x07sk-1234567890"]},
        "ready",
    )
    site.install(tool("other"))
    path, env = str(site.make(made)), {"OPENAI_API_KEY": "sk-1234567890", "MY_TOKEN": "hunter2-hunter2"}
    done = site.ext("dev", path, stdin=f"/hi Ada\n/nope\n{'x' * 2**21}\n\n/hi ask\n2\ncall t\n", env=env)
    assert done.code == 0, done
    assert done.out.startswith("hello [key hidden]\nthanks\n") and "ok" in done.out, done.out
    assert "a line of 2,097,152 bytes is left out" in done.err
    assert "unknown command /nope" in done.err and "[dev] Which?\n  1  red\n  2  blue\n" in done.err
    assert '"selected":"blue"' in (site.folder / "heard").read_text().replace("\\", "")
    assert "log  awake [key hidden]" in done.err
    assert "→  command_invoked" in done.err and "←  command_response" in done.err and "●  dev started" in done.err
    assert "sk-1234567890" not in done.out + done.err
    assert "info: see [key hidden]" in done.err and "hunter2-hunter2" not in done.out + done.err
    assert "other" not in done.err, "it is alone"


def test_a_log_is_followed_from_where_it_is_also_when_it_is_begun_anew(tmp_path: Path) -> None:
    path, seen = tmp_path / "log", list[str]()
    path.write_text("long ago\n")
    log = Growing(path, seen.append, 256 * 1024, from_now=True)
    log.look()
    assert seen == []
    with path.open("a") as file:
        file.write("one\ntw")
    log.look()
    assert seen == ["one"]
    with path.open("a") as file:
        file.write("o\n")
    log.look()
    for part in ("ha", "lf\n"):
        with path.open("a") as file:
            file.write(part)
        log.look()
    assert seen == ["one", "two", "half"]
    path.write_text("three\n")
    log.look()
    assert seen == ["one", "two", "half", "three"]
    with path.open("a") as file:
        file.write(f"{'x' * 1_000_000}\nend\n")
    log.look()
    assert seen[-1] == "end" and sum(map(len, seen)) < 300_000, "of a flood, the end"
    path.unlink()
    log.look()


def test_the_same_as_json_has_a_value_on_every_line(site: ExtSite) -> None:
    site.install(tool("other"))
    path = str(site.make(chaos("dev", *script("hello"))))
    done = site.ext("dev", path, "--json", "--with-others", stdin="/hi\n")
    values = [json.loads(line) for line in done.out.splitlines()]
    assert done.code == 0 and values[-1] == {"type": "ended", "code": 0}
    assert {"frame", "log", "ext_display"} <= {value["type"] for value in values}
    frames = [value for value in values if value["type"] == "frame"]
    assert {frame["extension"] for frame in frames} == {"dev", "other"}
    quiet = site.ext("dev", path, "--quiet-frames", stdin="/hi\n")
    assert quiet.out == "hello\n" and "command_invoked" not in quiet.err


def test_one_that_does_not_run_and_flags_that_contradict_are_said(site: ExtSite) -> None:
    broken = site.ext("dev", str(site.make(chaos("broken", "exit:3"))), stdin="")
    assert broken.code == 1 and "exited with code 3" in broken.err
    assert site.ext("dev", str(site.folder / "nowhere"), stdin="").code == 2
    assert site.ext("dev", ".", "--provider", "demo", "--script", "x").code == 2


def test_a_save_reloads_it_a_broken_one_is_said_and_the_next_heals(site: ExtSite) -> None:
    directory = site.make(chaos("dev", *script("first")))
    terminal = site.terminal("dev", str(directory))
    terminal.expect("ready")
    terminal.sendline("/hi")
    terminal.expect("\r\nfirst\r\n")
    save(directory, ["exit:3"])
    terminal.expect("exited with code 3")
    terminal.sendline("/hi")
    terminal.expect("\r\nfirst\r\n")  # the old one stays
    save(directory, script("second"))
    terminal.expect("changed on disk and was reloaded")
    terminal.sendline("/hi")
    terminal.expect("\r\nsecond\r\n")
    terminal.sendeof()
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0


def test_ctrl_c_cancels_what_runs_and_ends_it_the_second_time(site: ExtSite) -> None:
    terminal = site.terminal("dev", str(site.make(chaos("dev", *script("hello")))))
    terminal.expect("ready")
    terminal.sendline("/slow")
    terminal.expect("→ +command_invoked")
    terminal.sendintr()
    terminal.expect("cancelled; Ctrl-C again ends")
    terminal.expect("/slow was cancelled")
    terminal.sendline("/hi")
    terminal.expect("\r\nhello\r\n")
    terminal.sendintr()
    terminal.expect("Ctrl-C again ends")
    terminal.sendintr()
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 130
