"""`hilt ext call` and `hilt ext run`: one thing tried for real, and whatever is wrong with it said plainly."""

import json
import signal
from pathlib import Path

import pytest

from support.ext_site import ExtSite
from support.extending import Made, chaos, tool
from support.hilt_process import DEADLINE

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = f"register_tool:{json.dumps({'name': 'weather', 'description': 'Tells it.', 'schema': CITY})}"


@pytest.fixture
def site(tmp_path: Path) -> ExtSite:
    return ExtSite(tmp_path)


def many(dialect: str = "frames") -> Made:
    """Tools and commands with every kind of outcome."""
    panel = f"open_panel:{json.dumps({'panel': {'id': 'p', 'title': 'The panel', 'lines': ['first', 'second']}})}"
    return chaos(
        "many",
        "hello",
        WEATHER,
        "register_tool:fails",
        "register_tool:draws",
        "register_command:hi",
        "register_command:board",
        "register_command:bad",
        {"on": "tool_call", "match": {"name": "fails"}, "do": "refuse:out of order"},
        {"on": "tool_call", "match": {"name": "draws"}, "do": "big_image:400"},
        {"on": "tool_call", "do": ["notify:on my way", "tool_progress:half of it", "answer:$ARGS"]},
        {"on": "command_invoked", "match": {"name": "board"}, "do": [panel, "answer:ok"]},
        {"on": "command_invoked", "match": {"name": "bad"}, "do": "refuse:no such person"},
        {"on": "command_invoked", "do": "answer:hello \x1b[31m$ARGS"},
        "ready",
        dialect="jsonrpc" if dialect == "jsonrpc" else "frames",
    )


def test_a_tool_is_called_and_what_it_says_comes_as_it_is_said(site: ExtSite) -> None:
    path = str(site.make(many()))
    done = site.ext("call", path, "weather", '{"city":"Rome"}')
    assert (done.code, json.loads(done.out)) == (0, {"city": "Rome"})
    assert "[many] info: on my way" in done.err and "half of it" in done.err
    seen = json.loads(site.ext("call", path, "weather", "--json", "-", stdin='{"city":"Oslo"}').out)
    assert (seen["extension"], seen["tool"], seen["status"], seen["is_error"]) == (
        "many",
        "weather",
        "completed",
        False,
    )
    assert seen["args"] == {"city": "Oslo"} and seen["ms"] > 0
    assert [event["message"] for event in seen["events"]] == ["on my way"]
    drawn = site.ext("call", path, "draws")
    assert (drawn.code, drawn.out) == (0, "[image, image/png, 300 bytes]\n")
    failed = site.ext("call", path, "fails")
    assert failed.code == 1 and "out of order" in failed.out and "fails failed" in failed.err


def test_what_cannot_be_called_is_said_with_what_could_be(site: ExtSite) -> None:
    path = str(site.make(many()))
    unknown = site.ext("call", path, "whether")
    assert unknown.code == 2
    assert 'many has no tool "whether"\nhint: did you mean "weather"? it offers weather, fails, draws' in unknown.err
    misfit = site.ext("call", path, "weather", '{"city":7}')
    assert misfit.code == 2 and 'do not fit weather: city: 7 is not of type "string"' in misfit.err
    nobody = site.ext("call", "weathr", "weather")
    assert nobody.code == 2 and 'there is no extension "weathr"' in nobody.err
    assert site.ext("call", path, "weather", "--timeout", "0").code == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ('{"city" "Rome"}', "the arguments: no JSON: Expecting ':' delimiter at line 1, column 9"),
        ("[" * 200_000, "stdin: nested too deeply"),
        (" " * 5_000_000, "stdin: more than 4,194,304 bytes"),
        ("@args.json", "args.json: no JSON: Expecting property name enclosed in double quotes at line 2, column 1"),
    ],
    ids=["syntax", "deep", "long", "file"],
)
def test_arguments_that_are_no_object_are_refused_before_anything_is_started(
    site: ExtSite, arguments: str, said: str
) -> None:
    (site.project / "args.json").write_text("{\n")
    given = ("-", arguments) if said.startswith("stdin") else (arguments, "")
    done = site.ext("call", ".", "weather", given[0], stdin=given[1])
    assert done.code == 2 and said in done.err and "hint: " in done.err


def test_a_command_is_run_and_what_it_shows_is_the_answer(site: ExtSite) -> None:
    other = site.make(many("jsonrpc"))
    assert "hello" in site.ext("run", str(other.rename(other.with_name("jsonrpc"))), "/hi").out
    path = str(site.make(many()))
    done = site.ext("run", path, "/hi Ada", "--", "--loud")
    assert (done.code, done.out) == (0, 'hello "Ada --loud"\n'), done
    board = site.ext("run", path, "board")
    assert board.code == 0 and "The panel\nfirst\nsecond" in board.out
    bad = site.ext("run", path, "/bad", "--json")
    assert bad.code == 1 and "no such person" in bad.err
    unknown = site.ext("run", path, "/ho")
    assert unknown.code == 2 and 'many has no command "/ho"' in unknown.err and "/hi, /board, /bad" in unknown.err


def test_one_that_does_not_start_is_said_with_the_end_of_its_log(site: ExtSite) -> None:
    broken = chaos("broken", "log:the reason is here", "exit:3")
    done = site.ext("call", str(site.make(broken)), "weather")
    assert done.code == 1
    assert "broken" in done.err and "exited with code 3" in done.err
    assert "the end of its log" in done.err and "the reason is here" in done.err


def test_an_installed_one_is_found_by_name_and_alone(site: ExtSite) -> None:
    site.install(tool("one"), tool("other", f"touch:{site.folder / 'other'}"))
    (site.folder / "other").unlink(missing_ok=True)  # it may have been tried before it was installed
    done = site.ext("call", "one", "one")
    assert (done.code, done.out) == (0, "ok\n")
    assert not (site.folder / "other").exists()
    assert site.ext("disable", "one").code == 0
    off = site.ext("call", "one", "one")
    assert off.code == 2 and "one is disabled" in off.err


def test_a_call_ends_at_its_timeout_and_at_ctrl_c_and_the_extension_is_told(site: ExtSite) -> None:
    told = site.folder / "told"
    slow = tool("slow", f"record:{told}", {"on": "tool_call", "do": ["tool_progress:begun", "hang"]})
    path = str(site.make(slow))
    late = site.ext("call", path, "slow", "--timeout", "0.5")
    assert late.code == 1 and "did not answer within 0.5 s" in late.out and "slow timed out" in late.err
    with site.started("ext", "call", path, "slow") as running:
        assert running.stderr
        assert running.stderr.readline().strip() == b"\xe2\x80\xa6 begun"
        running.send_signal(signal.SIGINT)
        rest = running.stderr.read().decode()
        assert running.wait(DEADLINE) == 130
    assert "slow was cancelled" in rest and "Traceback" not in rest
    lines = [json.loads(line).get("line", "{}") for line in told.read_text().split("\n")[:-1]]
    assert [json.loads(line).get("type") for line in lines].count("tool_cancel") == 2


def test_keys_of_the_user_are_not_shown(site: ExtSite) -> None:
    leaks = tool("leaks", {"on": "tool_call", "do": ["notify:sk-1234567890", "answer:sk-1234567890"]})
    path = str(site.make(leaks))
    for flags in ([], ["--json"]):
        done = site.ext("call", path, "leaks", *flags, env={"OPENAI_API_KEY": "sk-1234567890"})
        assert done.code == 0 and "sk-1234567890" not in done.out + done.err and "[key hidden]" in done.out
