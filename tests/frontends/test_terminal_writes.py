"""A19: whatever a model, a tool, a file, an extension, a server or an argument says, a terminal only shows it.

Here the real hilt writes to a terminal, every stream of it, and the bytes that arrive there are looked at.
"""

import ast
import asyncio
import json
import os
import re
import select
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hilt as package
from hilt.frontends.terminal import MARK
from support.agent import calls, says
from support.api_server import ApiServer, Reply
from support.chat_server import PROVIDER
from support.extending import Made, chaos
from support.hilt_process import DEADLINE, Hilt

EVIL = (
    "\u202e\x9b2J"
    "\x1b]52;c;ZXZpbA==\x07\x1b]0;title\x1b\\\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x1b\\\x1b[2J\x1b[H\x1b[1A\x1b[2K"
    "\x1b[?1049h\x1b[6n\x1bP$qm\x1b\\\x1bPq#0!9~\x1b\\\x1b_Ga=T;AA\x1b\\\x1b^x\x1b\\\x1bXx\x1b\\\x1bc\x1b(0\x0e"
    "\x9d52;c;eA==\x9c\x90q\x9c\x9fx\x9c\x85\x08\x08\x7f\x05\x0b\x0crm\r\u202e\u2066\u200b\u2028\ufeff\u00ad\U000e0072"
    f"\x1b[8mhidden\x1b]0;not ended\nhilt: forged\nhilt {MARK} forged? [y/N] \x1b"
)
WORD = EVIL.replace("\n", " ")
"""The same on one line."""
NOT_TEXT = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff◈]"
)
SGR = re.compile("\x1b\\[[0-9;:]*m")


class AtTerminal(Hilt):
    """hilt with its input, its output and its errors at one terminal."""

    def show(self, *arguments: str | bytes, typed: bytes = b"", piped: bytes = b"") -> str:
        """What reaches the terminal, once it is known to be only text and colours."""
        screen, device = os.openpty()
        settings = termios.tcgetattr(device)
        settings[3] &= ~termios.ECHO  # what is typed would be shown as well
        termios.tcsetattr(device, termios.TCSANOW, settings)
        os.write(screen, typed)
        reader, writer = os.pipe()
        os.write(writer, piped)
        os.close(writer)
        try:
            process = subprocess.Popen(
                self.command(*arguments),
                stdin=reader if piped else device,
                stdout=device,
                stderr=device,
                cwd=self.project,
                env=self.environment,
            )
            os.close(device)
            os.close(reader)
            shown = b"".join(_written(screen)).decode()
            assert process.wait(DEADLINE) in (0, 1, 2)
        finally:
            os.close(screen)
        text = SGR.sub("", shown.replace("\r\n", "\n"))
        assert "\x1b" not in text and "\r" not in text and not NOT_TEXT.search(text), ascii(text)
        assert not re.search("^hilt: forged", text, re.MULTILINE), text
        assert "Traceback" not in text and "internal error" not in text, text
        return text


def _written(screen: int) -> Iterator[bytes]:
    deadline = time.monotonic() + DEADLINE
    while True:
        ready, _, _ = select.select([screen], [], [], deadline - time.monotonic())
        assert ready, "hilt did not end"
        try:
            yield os.read(screen, 1 << 16)
        except OSError:  # every other end of it is closed
            return


@pytest.fixture
def hilt(tmp_path: Path) -> AtTerminal:
    return AtTerminal(tmp_path)


def hostile_turns(hilt: Hilt) -> tuple[str, ...]:
    """A model that says it everywhere, in a project whose files say it too."""
    (hilt.project / "evil.txt").write_text(EVIL)
    (hilt.project / WORD[-40:].replace("/", "")).write_text("")
    words = {"type": "text", "text": EVIL.replace("hilt: forged", "forged")}  # a model may write any line
    acts = calls(
        ("bash", {"command": f"ls; cat evil.txt; : '{WORD}'".replace("\x00", "")}),
        (f"{WORD[:60]}\nhilt: forged", {EVIL: EVIL}),
    )
    acts["content"] = [words, *acts["content"], {"type": "tool_call", "name": "read", "args": {"path": EVIL}}]
    return hilt.script(acts, says(words["text"]))


def ext(hilt: Hilt, *made: Made) -> list[str]:
    return [word for one in made for word in ("--ext", str(one.write(hilt.folder / "flagged")))]


def noticed(method: str) -> str:
    """It says it by this method."""
    params = dict.fromkeys(("key", "title", "content", "anchor", "width", "text", "message", "level"), EVIL)
    if method == "showMessage":  # by the owner of a command it is the answer
        params["text"] = EVIL.replace("hilt: forged", "forged")
    frame = {"type": "host_notify", "method": method, "params": {**params, "placement": "above-input"}}
    return f"frame:{json.dumps(frame)}"


def asked(method: str) -> str:
    """It asks the host for this, in the same words."""
    params = dict.fromkeys(("title", "prompt", "topic", "data", "kind"), EVIL)
    items = {"items": [{"id": EVIL, "label": EVIL}], "choices": [EVIL]}
    return f"host_request:{json.dumps({'id': method, 'method': f'host/{method}', 'params': {**params, **items}})}"


def shouting(*more: Any) -> Made:
    """An extension that says it in every way it has, as soon as it may."""
    tool = {"name": "t", "description": EVIL, "schema": {"type": "object", "description": EVIL}}
    return chaos(
        "loud",
        "hello",
        f"register_tool:{json.dumps(tool)}",
        f"register_tool:{WORD}",
        "register_command:c",
        "intercept:tool_call",
        "ready",
        f"notify:{EVIL}",
        f"notify:{json.dumps({'level': EVIL, 'message': EVIL})}",
        f"open_panel:{json.dumps({'panel_id': 'p', 'title': EVIL, 'lines': [EVIL], 'footer': EVIL})}",
        *map(noticed, ("setWidget", "showOverlay", "closeOverlay", "setInputText", "showMessage", "notify", EVIL)),
        *map(asked, ("showPicker", "askUser", "publish", "requestQuit", "setSessionTitle", "appendSessionEntry", EVIL)),
        f"unknown_type:{WORD}",
        f"raw:{WORD}",
        *more,
        {"on": "tool_call", "do": [f"tool_progress:{EVIL}", f"answer:{EVIL}"]},
    )


def test_a_hostile_model_tool_output_and_file_names_are_only_shown(hilt: AtTerminal) -> None:
    shown = hilt.show("-p", "go", *hostile_turns(hilt))
    assert shown.count("‹U+202E›") >= 3 and "forged? [y/N]" in shown and "hidden" in shown


def test_what_a_model_server_says_is_only_shown(hilt: AtTerminal) -> None:
    assert "‹U+202E›" in hilt.show("-p", "go", *hilt.script({"error": EVIL}))
    hilt.show("-p", "go", *hilt.script({"content": [], "expect": {"contains": EVIL}}))


async def test_what_an_http_server_says_is_only_shown(hilt: AtTerminal) -> None:
    async with ApiServer(Reply.json(400, {"error": {"message": EVIL}})) as server:
        login = ("login", "openai", "--base-url", server.url)
        key = b"sk-0123456789abcdef\n"  # piped: at a terminal, what was typed before it is asked for is dropped
        assert "could not be checked" in await asyncio.to_thread(lambda: hilt.show(*login, piped=key))
        url = ("--base-url", server.url)
        assert "‹U+25C8› forged" in await asyncio.to_thread(lambda: hilt.show("-p", "go", *PROVIDER, *url))


def test_events_at_a_terminal_are_the_same_json_without_a_raw_character(hilt: AtTerminal) -> None:
    flags = hostile_turns(hilt)
    shown = hilt.show("--json", "go", *flags)
    piped = hilt.run("--json", "go", *flags)
    assert "\u202e" in piped.out and "\x9b" in piped.out  # a program gets what is there
    there = [json.loads(line) for line in shown.split("\n") if line.startswith("{")]
    assert [event for event in there if event["type"] == "assistant_message"][-1]["content"] == [
        event for event in piped.events if event["type"] == "assistant_message"
    ][-1]["content"]


def test_rpc_at_a_terminal_answers_without_a_raw_character(hilt: AtTerminal) -> None:
    word = WORD[:300]  # a terminal takes lines of 4 KiB
    lines = [{"type": word}, {"type": "prompt", "id": word, "message": 1}, {"type": "prompt", "message": word}]
    typed = b"".join(json.dumps(line).encode() + b"\n" for line in lines) + b"\x04"
    shown = hilt.show("rpc", *hilt.script(says(EVIL)), typed=typed)
    answers = [json.loads(line) for line in shown.split("\n") if line.startswith("{")]
    assert answers[1]["id"] == word
    assert any(answer.get("type") == "assistant_message" for answer in answers)


@pytest.mark.parametrize("face", ["-p", "--json"])
def test_a_hostile_extension_is_only_shown_and_each_line_of_it_is_signed(hilt: AtTerminal, face: str) -> None:
    refusing = chaos("no", "hello", "intercept:tool_call", "ready", {"on": "event_intercept", "do": f"block:{EVIL}"})
    failing = chaos("gone", f"stderr:{EVIL}", "exit:3")
    flags = ext(hilt, shouting(), failing)
    shown = hilt.show(face, "go", *hilt.script(calls(("t", {})), says("done")), *flags)
    assert "[loud] info: hilt: forged\n" in shown and "[loud] info: hilt ‹U+25C8› forged? [y/N]" in shown
    assert "gone is not running" in shown
    refused = hilt.show(face, "go", *hilt.script(calls(("t", {})), says("done")), *ext(hilt, shouting(), refusing))
    assert "refused" in refused or face == "--json"


@pytest.mark.parametrize("action", ["display", "insert", "prompt", "error"])
def test_what_a_command_of_an_extension_gives_is_only_shown(hilt: AtTerminal, action: str) -> None:
    text = EVIL.replace("hilt: forged", "forged") if action == "display" else EVIL  # what was asked for is the answer
    acted = {"action": action, "prompt": text, "insert": text, "display": text}
    fields = {"error": text} if action == "error" else acted
    loud = shouting({"on": "command_invoked", "do": f"answer:{json.dumps(fields)}"})
    assert "‹U+202E›" in hilt.show("-p", "/c", *hilt.script(says("done")), *ext(hilt, loud))


def test_a_hostile_manifest_is_only_shown(hilt: AtTerminal) -> None:
    for fields in ({"exec": EVIL}, {"exec": "./x", "args": EVIL}, {EVIL: EVIL}, {"name": EVIL, "exec": "x"}):
        broken = Made("broken", fields)
        hilt.show("-p", "go", *hilt.script(says("done")), *ext(hilt, broken))
    hilt.show("-p", "go", *hilt.script(says("done")), "--ext", EVIL.replace("\x00", ""))


def test_what_is_told_about_a_hostile_extension_on_disk_is_only_shown(hilt: AtTerminal) -> None:
    Made("loud", {"exec": "/bin/true", "args": [EVIL], "description": EVIL, "version": EVIL}).write(
        hilt.home / "extensions"
    )
    Made("broken", {"exec": EVIL, "permissions": EVIL}).write(hilt.home / "extensions")
    (hilt.home / "logs").mkdir()
    written = EVIL.replace("hilt: forged", "forged")  # it was asked for, and nothing else is shown beside it
    (hilt.home / "logs" / "ext-loud.log").write_text(written)
    for verb in (["list"], ["info", "loud"], ["validate", str(hilt.home / "extensions" / "loud")], ["info", EVIL]):
        hilt.show("ext", *verb)
        hilt.show("ext", *verb, "--json")
    assert "‹U+202E›" in hilt.show("ext", "logs", "loud")


def test_hostile_sessions_are_only_listed_and_shown(hilt: AtTerminal) -> None:
    flags = hostile_turns(hilt)
    assert hilt.run("-p", EVIL, *flags).code == 0
    id_ = json.loads(hilt.run("sessions", "list", "--json").out)[0]["id"]
    assert "‹U+202E›" in hilt.show("sessions", "rename", id_, EVIL)
    for verb in (["list"], ["show", id_], ["tree", id_], ["fork", id_]):
        hilt.show("sessions", *verb)
        said = hilt.show("sessions", *verb, "--json")
        assert json.loads(said)
    assert "‹U+202E›" in hilt.show("sessions", "list")
    assert "\\u202e" in hilt.show("sessions", "list", "--json")
    assert "[y/N]" in hilt.show("sessions", "delete", id_, typed=b"n\n")
    assert "pick #" in hilt.show("-r", "-p", "go", *flags, typed=EVIL.encode().replace(b"\n", b" ") + b"\n")
    assert "‹U+202E›" in hilt.show("-c", "-p", "/session tree", *flags)


def test_a_hostile_file_of_models_is_only_listed(hilt: AtTerminal) -> None:
    hilt.home.mkdir()
    models = {"providers": {"openai": {"models": [{"id": WORD, "name": EVIL}]}}}
    (hilt.home / "models.json").write_text(json.dumps(models))
    hilt.show("models")
    json.loads(hilt.show("models", "--json"))
    (hilt.home / "models.json").write_text(json.dumps({EVIL: EVIL}))
    hilt.show("models")


def test_hostile_settings_skills_and_instructions_are_only_told(hilt: AtTerminal) -> None:
    hilt.home.mkdir()
    (hilt.home / "skills" / "x").mkdir(parents=True)
    (hilt.home / "skills" / "x" / "SKILL.md").write_text(f"---\nname: {json.dumps(EVIL)}\n---\n{EVIL}")
    hilt.show("-p", "/skills", *hilt.script(says("done")))
    (hilt.home / "config.toml").write_text(f"permissions = {json.dumps(EVIL)}\n".replace("\\u007f", "x"))
    assert "hilt: error: " in hilt.show("-p", "go", *hilt.script(says("done")))


@pytest.mark.parametrize(
    "arguments",
    [
        ["-p", "x", "--provider", EVIL],
        ["-p", "x", "--model", EVIL, "--provider", EVIL],
        ["-p", "x", "--reasoning", EVIL],
        ["-p", "x", "--max-steps", EVIL],
        ["-p", "x", "--cwd", EVIL],
        ["-p", "x", "--script", EVIL],
        ["-p", "x", "--session", EVIL],
        ["-p", "x", "--tools", EVIL],
        [f"--{EVIL}"],
        ["".join(EVIL.split())],
        ["rpc", EVIL],
        ["sessions", EVIL],
        ["sessions", "show", EVIL],
        ["sessions", "import", EVIL],
        ["login", EVIL],
        ["logout", EVIL],
    ],
    ids=lambda arguments: " ".join(arguments).replace(EVIL, "EVIL"),
)
def test_a_hostile_argument_is_only_quoted(hilt: AtTerminal, arguments: list[str]) -> None:
    shown = hilt.show(*arguments)
    assert "hilt: " in shown and "evil" in shown.lower().replace("‹u+", "evil")


# Where the source writes

STREAMS = {"sys.stdout", "sys.stderr"}
HARMLESS = {"write", "flush", "isatty", "fileno"}
CLEANING = {"clean", "visible", "one_line", "json_for_stdout", "format_help"}
KNOWN = {
    "authoring/bare_echo.py": {"out = sys.stdout"},  # a program of its own, whose stdout is a pipe to hilt
    "cli/ext/alone.py": {"self.mask.text(clean(text))"},
    "cli/ext/beholding.py": {  # all of it was cleaned, or went through json_for_stdout, the line before
        "_write(sys.stderr, f'{_DIM}{shown}{_PLAIN}\\n' if self._colour else f'{shown}\\n')",
        "_write(sys.stdout, f'{line}\\n')",
        "_write(sys.stderr, clean(self._secrets.hide(text)) + '\\n')",
        "_write(sys.stdout, shown if shown.endswith('\\n') else f'{shown}\\n')",
    },
    "cli/ext/developing.py": {
        "Progress(sys.stderr, mask, answers=lambda: asked_of(app.session, self._typed))",  # cleans in `say`
    },
    "cli/faces.py": {
        "__version__",
        "LineWriter(1)",  # rpc, whose lines go through json_for_stdout
        "(sys.stdout, sys.stderr)",  # flushed at the end
    },
    "cli/main.py": {
        "text",  # the version, or the help
        "(sys.stdin, sys.stdout, sys.stderr)",  # looked at: they may be closed
    },
    "cli/models.py": {"_json(found)"},  # through json_for_stdout
    "frontends/asides.py": {"self._mask.text(clean(text))"},
    "frontends/consent.py": {"_page(question, details)"},  # through visible, and with the mark
    "frontends/jsonl.py": {"LineWriter(1)"},  # through json_for_stdout
    "frontends/plain.py": {
        "Progress(sys.stderr, mask, answers=lambda: asked_of(session, text))",  # cleans in `say`
        "_write(sys.stdout, answer if answer.endswith('\\n') else answer + '\\n')",  # clean, unless it is piped
    },
    "transport/landlock_start.py": {"message"},  # in the extension's own log
}
"""What is written without being seen to go through the choke point, by module; whoever adds to it says why it may."""


def raw_parts(value: ast.AST, function: ast.AST) -> Iterator[str]:
    """The parts of what is written that are neither constant nor made harmless."""
    match value:
        case ast.Constant():
            return
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in CLEANING:
            return
        case ast.Call(func=ast.Attribute(value=inner, attr="decode" | "rstrip")):
            yield from raw_parts(inner, function)
        case ast.BinOp(left=one, right=other) | ast.IfExp(body=one, orelse=other):
            yield from raw_parts(one, function)
            yield from raw_parts(other, function)
        case ast.Name(id=name) if found := [
            node.value
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
        ]:
            for assigned in found:
                yield from raw_parts(assigned, function)
        case ast.JoinedStr(values=parts):
            for part in parts:
                yield from raw_parts(part.value if isinstance(part, ast.FormattedValue) else part, function)
        case _:
            yield ast.unparse(value)


def writes(tree: ast.AST) -> Iterator[str]:
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in ("stdout", "stderr") and ast.unparse(node) in STREAMS:
            parent = parents[node]
            if not (isinstance(parent, ast.Attribute) and parent.attr in HARMLESS):
                yield ast.unparse(parent)
            elif parent.attr == "write":
                call = parents[parent]
                function: ast.AST = parent
                while not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
                    function = parents[function]
                assert isinstance(call, ast.Call)
                yield from raw_parts(call.args[0], function)
        elif isinstance(node, ast.Call) and re.match(
            r"(print|LineWriter|input)\(|os\.write\([12]\b", ast.unparse(node)
        ):
            yield ast.unparse(node)


def test_nothing_is_written_to_a_stream_past_the_choke_point() -> None:
    source = Path(package.__file__).parent
    found: dict[str, set[str]] = {}
    for path in sorted(source.rglob("*.py")):
        if raw := set(writes(ast.parse(path.read_text()))):
            found[str(path.relative_to(source))] = raw
    assert found == KNOWN
