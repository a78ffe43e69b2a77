"""The page about the jsonrpc dialect has every method, shape, event and action, with the code's words and numbers."""

import re
import subprocess
import sys
from pathlib import Path
from runpy import run_path
from typing import Any, get_args

import pytest
from msgspec.structs import fields

from docs.fences import ROOT
from hilt.agent import foreign, screen, words
from hilt.agent.breaker import Breaker
from hilt.agent.compaction import ENOUGH
from hilt.agent.deadlines import Deadlines
from hilt.errors import FrameError
from hilt.extensions import capabilities, chores, extension, guards, peer, registrations, supervisor
from hilt.extensions.capabilities import needed_to_do
from hilt.extensions.frames.inbound import kind_method
from hilt.extensions.methods import callbacks, dispatch, notices, serving, streaming
from hilt.model.content import Text
from hilt.model.conversation import AssistantMessage, now
from hilt.model.extensions import Placement
from hilt.model.verdicts import Interceptable
from hilt.packages.arrangement import _ANNOUNCED
from hilt.packages.manifest import _TOOL_TIMES, Guard, Manifest
from hilt.wire import faults, freeform, jsonrpc, jsonrpc_events, jsonrpc_messages, jsonrpc_results, jsonrpc_types
from hilt.wire.frames_kinds import KINDS
from hilt.wire.jsonrpc_actions import action
from hilt.wire.jsonrpc_methods import METHODS
from hilt.wire.limits import TEXT_LIMIT
from hilt.wire.line import LINE_LIMIT

TABLES = run_path(str(ROOT / "scripts" / "write_jsonrpc_reference.py"))
"""What writes the tables of the page."""
PAGE = (ROOT / "docs/reference/jsonrpc-protocol.md").read_text(encoding="utf-8")
SAID = AssistantMessage((Text("hi"),), now(), model="m", provider="p")
EVENTS = [
    jsonrpc_events.agent_start(),
    jsonrpc_events.session_load(1),
    jsonrpc_events.agent_init(1),
    jsonrpc_events.prompt_build("s"),
    jsonrpc_events.message_pre("m"),
    jsonrpc_events.turn_start(),
    *(jsonrpc_events.stream_delta(kind, 0, "d") for kind in get_args(jsonrpc_events.DeltaKind)),
    jsonrpc_events.stream_done(SAID),
    jsonrpc_events.step_wait("1", "t", {}),
    jsonrpc_events.tool_start("1", "t", {}),
    jsonrpc_events.tool_update("1", "t", "p"),
    jsonrpc_events.tool_end("1", "t", (), {}, is_error=False),
    jsonrpc_events.turn_end(None, None),
    jsonrpc_events.retry(1, 2, 3, "e"),
    jsonrpc_events.max_turns(1, 2),
    jsonrpc_events.compact(1, 2, 3),
    jsonrpc_events.agent_end((SAID,)),
]
_HOURS = {3_600_000: "an hour"}
SENT: dict[str, Any] = {"placement": get_args(Placement)[0], "lines": ["x"]}
"""What stands in a member that not any text will do for."""
PAYLOADS: dict[str, dict[str, Any]] = {
    "notify": {"message": "m"},
    "showMessage": {"text": "t"},
    "setSessionTitle": {"title": "t"},
    "setStatus": {"key": "k", "text": "t"},
    "sendMessage": {"content": "c"},
    "attachImage": {"data": "iVBORw0KGgo=", "mimeType": "image/png"},
    "detachImage": {},
    "quit": {},
}


def _section(title: str) -> str:
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert found, f"there is no heading {title!r}"
    return found[1]


def _rows(section: str) -> dict[str, list[str]]:
    """By the code in the first cell, the others; generated tables are passed over."""
    written = re.sub(r"<!-- (methods|shapes):.*?<!-- end -->", "", section, flags=re.DOTALL)
    rows = [
        [cell.strip() for cell in line[1:-1].split(" | ")] for line in written.split("\n") if line.startswith("| `")
    ]
    return {name: row[1:] for row in rows for name in re.findall(r"`([^`]+)`", row[0])}


def test_the_tables_of_methods_and_shapes_are_those_of_the_types() -> None:
    script = ROOT / "scripts" / "write_jsonrpc_reference.py"
    checked = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, timeout=30)
    assert checked.returncode == 0, checked.stderr


def test_every_method_has_a_row_once_and_those_that_ask_the_host_have_a_page_of_their_own() -> None:
    own = [name for name in METHODS if not name.startswith("host/")]
    assert sorted(TABLES["methods_in"](PAGE)) == sorted(own)
    assert sorted(TABLES["shapes_in"](PAGE)) == sorted(TABLES["SHAPES"])
    asked = [method for name, method in METHODS.items() if name.startswith("host/")]
    (added,) = [method.name for method in asked if method.added]
    assert f"{len(asked) - 1} methods of piglet's and `{added}` ➕" in PAGE


def test_a_member_that_is_not_in_the_page_is_noticed() -> None:
    assert TABLES["rewritten"](PAGE.replace("`interruptBehavior`?", "`behaviour`?")) == PAGE
    assert TABLES["rewritten"](PAGE.replace("| `register/shortcut` | `key`", "| `register/shortcut` | `kei`")) == PAGE


def test_what_the_page_says_cannot_be_left_out_is_what_the_code_asks_for() -> None:
    needed: dict[str, set[str]] = TABLES["NEEDED"]
    named = {kind_method(kind): {field} for kind, field in KINDS.items() if kind != "event_handler"}
    named |= {"register/tool": {"name"}, "register/command": {"name"}}
    assert {method: members for method, members in needed.items() if method.startswith("register/")} == named
    for method in sorted(notices.ACTIONS):
        members = {member.encode_name for member in fields(METHODS[method].params)}
        assert {member for member in members if not _taken(method, members - {member})} == needed.get(method, set())


def _taken(method: str, members: set[str]) -> bool:
    try:
        notices.action(method, freeform.pack({member: SENT.get(member, "x") for member in members}))
    except FrameError:
        return False
    return True


def test_every_method_is_explained() -> None:
    registering, asked = _rows(_section("Registering")), _rows(_section("What hilt asks"))
    assert {*registering, *asked} >= {name for name in METHODS if name.startswith("register/")}
    assert set(asked) == {
        name for name, method in METHODS.items() if method.direction == "host->ext" and method.result
    } - {"initialize"}
    told = _rows(_section("Telling and asking hilt"))
    notes = {name for name, method in METHODS.items() if method.direction == "ext->host" and not method.result}
    assert set(told) == {name for name in notes if not name.startswith("register/")} - {"provider/delta"}
    opening = _section("Opening and end")
    assert [name for name in jsonrpc_types.HOST_CAPABILITIES if f"`{name}`" not in opening] == []
    assert f'version "{jsonrpc_types.PROTOCOL_VERSION}"' in PAGE and f"`{_ANNOUNCED.decode()}`" in PAGE


def test_every_event_has_a_row_with_its_data() -> None:
    rows = _rows(_section("Events"))
    assert list(rows) == list(jsonrpc_events.EVENTS) and {event.type for event in EVENTS} == set(rows)
    for event in EVENTS:
        assert [member for member in event.data if f"`{member}`" not in rows[event.type][0]] == [], event.type
        known = {member for one in EVENTS if one.type == event.type for member in one.data}
        named = set(re.findall(r"`([A-Z]\w+)`", rows[event.type][0]))
        assert named == known, event.type
    for kind in get_args(jsonrpc_events.DeltaKind):
        assert f"`{kind}`" in rows["EventStreamDelta"][0]


def test_every_action_has_a_row_with_its_payload() -> None:
    rows = _rows(_section("Actions"))
    assert set(rows) - {"type"} == set(PAYLOADS)
    source = (Path(jsonrpc.__file__).parent / "jsonrpc_actions.py").read_text(encoding="utf-8")
    assert set(re.findall(r'case "(\w+)":', source)) == set(PAYLOADS)
    for kind, payload in PAYLOADS.items():
        assert action(jsonrpc_types.Action(kind, payload)) is not None
        assert [member for member in payload if f"`{member}`" not in rows[kind][0]] == [], kind


def test_the_kinds_of_pieces_are_those_that_are_read() -> None:
    source = (Path(jsonrpc.__file__).parent / "jsonrpc_provider.py").read_text(encoding="utf-8")
    section = _section("Models by extensions")
    kinds = re.findall(
        r"`(\w+)`", " ".join(row.split(" | ")[0] for row in section.split("\n") if row.startswith("| `"))
    )
    assert set(re.findall(r'case "(\w+)":', source)) == {kind for kind in kinds if kind not in ("provider", "type")}


def test_the_codes_and_the_words_are_those_of_the_code() -> None:
    lines = _section("Lines")
    codes = [
        faults.INVALID_REQUEST,
        faults.METHOD_NOT_FOUND,
        faults.INVALID_PARAMS,
        faults.INTERNAL,
        faults.NOT_FOUND,
    ]
    assert [-int(code) for code in re.findall(r"^\| −(\d+)", lines, re.MULTILINE)] == codes
    registering = _rows(_section("Registering"))
    assert [
        event for event in get_args(Interceptable) if f"`{event}`" not in registering["register/interceptor"][0]
    ] == []
    told = _rows(_section("Telling and asking hilt"))
    assert [place for place in get_args(Placement) if f"`{place}`" not in told["setWidget"][0]] == []


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (
            "tool/execute",
            f"{_HOURS[_TOOL_TIMES['jsonrpc']]}, or `tool_timeout_ms`; with `tool/progress` up to ten times",
        ),
        (
            "interceptor/before",
            f"{Guard().timeout_ms // 1000} s, or `guard.timeout_ms`; {guards._IMPATIENCE:g} s after",
        ),
        ("interceptor/after", f"{Deadlines().result:g} s"),
        ("event/dispatch", f"{dispatch._PATIENCE:g} s for an action to count; the next event waits for the answer, "),
        ("messageHook/onMessage", f"{Deadlines().hook:g} s"),
        ("inputTransformer/transform", f"{Deadlines().transformer:g} s"),
        ("compact/execute", f"{Deadlines().compactor:g} s"),
        ("provider/stream", f"{streaming._SILENCE:g} s of silence, {streaming._LONGEST:,.0f} s in all"),
    ],
)
def test_the_deadlines_are_those_of_the_code(method: str, expected: str) -> None:
    assert _rows(_section("What hilt asks"))[method][1].startswith(expected)
    # Those of the agent come before those of the wire.
    assert (
        max(Deadlines().hook, Deadlines().result, Deadlines().transformer, Deadlines().compactor) <= callbacks.PATIENCE
    )


def test_the_other_numbers_are_those_of_the_code() -> None:
    said, breaker = " ".join(PAGE.split()), Breaker()
    for expected in (
        f"A line is shorter than {LINE_LIMIT >> 20} MiB",
        f"up to {registrations._HINT:,} characters",
        f"left alone for {breaker.rest / 60:g} minutes",
        f"below {ENOUGH} messages",
        f"images beyond {jsonrpc_results.IMAGE_ROOM >> 10} KiB of base64 in all",
        f"answered, {dispatch._NEXT:g} s at most",
        f"once {dispatch._WAITING:,} events wait",
        f"cut after {TEXT_LIMIT:,} characters, images over {jsonrpc_events.IMAGE_LIMIT >> 10} KiB of base64",
        f"the newest {jsonrpc_events.MESSAGES_LIMIT >> 20} MiB are told",
        f"{screen._WIDGETS} of each extension, {screen._CONTENT:,} characters each",
        f"{screen._OVERLAYS} of each extension |",
        f"{chores._AT_ONCE} of an extension are at work at the same time; {extension._REQUESTS:,} more wait",
        f"no more than {serving._BYTES >> 20} MiB",
        f"when {streaming._HIGH:,} pieces wait",
        f"its {streaming._SILENCE:g} s anew",
        f"At most {jsonrpc_messages.MESSAGES_LIMIT:,} messages",
        f"within {supervisor._WINDOW / 60:g} minutes",
        f"at the end {Manifest('').stop_grace_ms // 1000} s",
    ):
        assert expected in said, expected
    spelt = (breaker.failures, guards._TRUSTED, foreign.DEPTH, words._UNASKED, peer._LONG_LINES, supervisor._CRASHES)
    assert spelt == (3, 3, 4, 3, 3, 5)


def test_what_a_permission_refuses_is_in_the_page() -> None:
    rows = [row[2:-2].split(" | ") for row in _section("Permissions").split("\n") if row.startswith("| `")]
    known = {capabilities.READ, capabilities.WRITE, capabilities.SUBMIT, capabilities.CALL}
    assert {name for row in rows for name in re.findall(r"`([^`]+)`", row[1])} == known
    (told,) = [row[0] for row in rows if "register/eventHandler" in row[0]]
    assert set(re.findall(r"`(Event\w+)`", told)) == capabilities._SAID & set(jsonrpc_events.EVENTS)
    submit = capabilities.SUBMIT
    (acting,) = [row[0] for row in rows if row[1] == f"`{submit}`"]
    tried = [action(jsonrpc_types.Action(kind, payload)) for kind, payload in PAYLOADS.items()]
    wanted = [kind for kind, one in zip(PAYLOADS, tried, strict=True) if one and submit in needed_to_do(one)]
    for method in sorted(notices.ACTIONS):
        members = [member.encode_name for member in fields(METHODS[method].params)]
        asked = notices.action(method, freeform.pack({member: SENT.get(member, "x") for member in members}))
        wanted += [method] if submit in needed_to_do(asked) else []
    assert set(re.findall(r"`(\w+)`", acting)) == set(wanted)
