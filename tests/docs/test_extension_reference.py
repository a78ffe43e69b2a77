"""The pages about extensions name every frame, field, event, limit and deadline, with the numbers of the code."""

import json
import re
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from docs.fences import ROOT, fences_of
from hilt.agent import background, foreign, interception, minds, notes, words
from hilt.errors import ManifestError
from hilt.extensions import (
    allowance,
    capabilities,
    chores,
    extension,
    guards,
    host,
    life,
    offered,
    peer,
    registrations,
    supervisor,
)
from hilt.extensions.frames import extension as speaking
from hilt.extensions.frames import fanout, handshake, inbound
from hilt.extensions.methods import registering
from hilt.extensions.services import asking
from hilt.frontends import consent, terminal
from hilt.model.extensions import ExtensionState
from hilt.model.verdicts import Interceptable
from hilt.packages import manifest as manifests
from hilt.packages import permissions
from hilt.packages.choices import STRICTNESS
from hilt.packages.manifest import Guard, Limits, Manifest, SandboxLevel, read_manifest
from hilt.packages.scripts import programs
from hilt.transport import process, stderr
from hilt.transport.channels import Bounds
from hilt.wire import frames, frames_answers, frames_events, frames_kinds, frames_types, jsonrpc_types, limits
from hilt.wire.jsonrpc_events import EVENTS
from hilt.wire.line import LINE_LIMIT

PROTOCOL = ROOT / "docs/reference/extension-protocol.md"
MANIFEST = ROOT / "docs/reference/manifest.md"
LIFECYCLE = ROOT / "docs/concepts/lifecycle.md"
INTERCEPTION = ROOT / "docs/concepts/interception.md"
SECURITY = ROOT / "docs/concepts/security.md"
ACTIONS = ("noop", "display", "insert", "prompt", "open_panel", "tool_prompt")
RANGED = [
    *(name for name in Manifest.__struct_fields__ if name.endswith("_ms") or name == "priority"),
    "guard.timeout_ms",
    *(f"limits.{name}" for name in Limits.__struct_fields__),
]
SAMPLES = [
    frames_events.session_start(),
    frames_events.session_end("shutdown"),
    frames_events.user_prompt_submit("hi", queued=True, image_count=1),
    frames_events.turn_start(1),
    frames_events.assistant_message("hi"),
    frames_events.tool_call("1", "bash", {}),
    frames_events.tool_call("1", "bash", {}, invalid="["),
    frames_events.turn_end("error", "oh"),
    frames_events.tool_confirmation_requested("1", "bash", {}, "ls"),
    frames_events.permission_decision("1", "bash", "denied", "user", reason="no"),
    frames_events.tool_result("1", "bash", {}, "completed", (), executed=True),
    frames_events.tool_result("1", "bash", {}, "failed", (), invalid="["),
    frames_events.pre_compact("1", 1, 1),
    frames_events.post_compact("1", 1, 1, "failed", "oh"),
    frames_events.subagent_start("a", "a", "a"),
    frames_events.subagent_stop("a", "a", "a", "failed", "oh"),
]


def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def _section(page: Path, title: str) -> str:
    """What stands under a heading of the second rank."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", _text(page), re.DOTALL | re.MULTILINE)
    assert found, f"{page.name} has no heading {title!r}"
    return found[1]


def _frames(title: str) -> dict[str, str]:
    """By type, what is said about each frame."""
    return dict(re.findall(r"^### `(\w+)`\n(.*?)(?=^### |\Z)", _section(PROTOCOL, title), re.DOTALL | re.MULTILINE))


def _fields(shape: Any) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(shape)]


def _rows(text: str, key: str) -> list[str]:
    """The rows of tables that have this name in their first cell."""
    return [line for line in text.split("\n") if line.startswith("| ") and f"`{key}`" in line.split(" | ")[0]]


def _second(section: str, what: str) -> str:
    """The second cell of the row about this."""
    (row,) = [line for line in section.split("\n") if line.startswith(f"| {what} |")]
    return row.split(" | ")[1].removesuffix(" |")


def _missing(text: str, fields: list[str]) -> list[str]:
    return [field for field in fields if not _rows(text, field)]


@pytest.mark.parametrize(
    ("title", "union"),
    [("From the extension", frames_types.ExtensionFrame), ("From the host", frames_types.HostFrame)],
    ids=["from the extension", "from the host"],
)
def test_every_frame_has_a_section_with_all_its_fields_and_nothing_else_has_one(title: str, union: Any) -> None:
    described = _frames(title)
    shapes = {str(shape.__struct_config__.tag): shape for shape in get_args(union)}
    assert set(described) == set(shapes)
    for tag, shape in shapes.items():
        fields = ["event", "session_id", "cwd", "sequence"] if tag == "event" else _fields(shape)
        assert _missing(described[tag], fields) == [], tag


def test_the_parts_of_frames_are_described() -> None:
    ours = _frames("From the extension")
    assert _missing(ours["tool_result"], _fields(frames_types.Block)) == []
    assert _missing(ours["command_response"], _fields(frames_types.PanelSpec)) == []
    (error,) = _rows(_frames("From the host")["host_response"], "error")
    assert [field for field in _fields(frames_types.HostFault) if f"`{field}`" not in error] == []


def test_every_event_has_a_row_with_its_fields() -> None:
    section = _section(PROTOCOL, "Events")
    for event in SAMPLES:
        (row,) = _rows(section, event.event)
        fields = json.loads(frames.encode(event)).keys() - {"type", "event"}
        assert [field for field in fields if f"`{field}`" not in row] == [], event.event
    (result,) = _rows(section, "tool_result")
    assert [field for field in _fields(frames_types.ResultSummary) if f"`{field}`" not in result] == []


def test_no_event_that_is_told_was_forgotten_here() -> None:
    source = _text(Path(fanout.__file__)) + _text(Path(host.__file__))
    makers = vars(frames_events).keys() - {"Event", "stamp"}
    told = {name for name in makers if re.search(rf"\b{name}\(", source)}
    assert {event.event for event in SAMPLES} == told
    named = set(re.findall(r"^\| `(\w+)`", _section(PROTOCOL, "Events"), re.MULTILINE))
    assert named - {"event"} == told


def test_what_may_stand_in_a_field_is_what_the_code_takes() -> None:
    ours, theirs = _frames("From the extension"), _frames("From the host")
    (capabilities,) = _rows(theirs["hello_ack"], "capabilities")
    assert tuple(re.findall(r"`(\w+)`", capabilities)[1:]) == frames_types.HOST_CAPABILITIES
    (version,) = _rows(theirs["hello_ack"], "zot_version")
    assert f"`{frames_types.REFERENCE_VERSION}`" in version
    for action in ACTIONS:
        response = frames_types.CommandResponse("1", action, tool_name="bash")
        assert not isinstance(frames_answers.command_answer(response), frames_answers.CommandFailed)
        assert _rows(ours["command_response"], action), action
    assert [kind for kind in frames_kinds.KINDS if not _rows(ours["register"], kind)] == []
    assert [way for way in offered.EXPOSURES if f"`{way}`" not in ours["register_tool"]] == []
    assert [kind for kind in limits.IMAGE_TYPES if f"`{kind}`" not in ours["tool_result"]] == []
    for event in get_args(Interceptable):
        assert f"`{event}`" in ours["subscribe"] and _rows(theirs["event_intercept"], event)
        assert f"`{event}`" in _section(INTERCEPTION, "Moments")


def test_the_deadlines_are_those_of_the_code() -> None:
    rows, unsaid = _section(PROTOCOL, "Deadlines"), Manifest("")
    start, call, grace = (ms // 1000 for ms in (unsaid.start_timeout_ms, unsaid.tool_timeout_ms, unsaid.stop_grace_ms))
    verdict, impatience = Guard().timeout_ms // 1000, guards._IMPATIENCE
    for what, expected in (
        ("`hello`", f"{start} s, or `start_timeout_ms`"),
        ("`ready`", f"{life._IDLE * 1000:g} ms of silence, {life._READY:g} s at most"),
        ("`tool_result`", f"{call} s, or `tool_timeout_ms`; with progress up to ten times that"),
        ("`command_response`", f"{speaking.COMMAND_PATIENCE:g} s"),
        ("`event_intercept_response`", f"{verdict} s, or `guard.timeout_ms`; {impatience:g} s after three"),
        ("all interceptors of one question together", f"{interception._BUDGET:g} s, or the longest `guard.timeout_ms`"),
        ("`call_tool`", f"{inbound._CALL_LIMIT:g} s"),
        ("`host_request`", f"[{asking.USUAL:g} s or more]"),
        ("reading its input", f"{Bounds().stall:g} s without any progress"),
        ("its exit after it closed its stdout", f"{life._EOF_GRACE:g} s"),
        ("its exit after `shutdown`", f"{grace} s, or `stop_grace_ms`"),
    ):
        assert _second(rows, what).startswith(expected), what
    assert (extension._PROGRESS_CAP, guards._TRUSTED, process._TERM_GRACE) == (10, 3, 0.5)  # spelt out there


def test_the_limits_are_those_of_the_code() -> None:
    rows, bounds = _section(PROTOCOL, "Limits"), Bounds()
    told, logged = extension._TOLD, extension._LOGGED
    for what, expected in (
        ("a line", f"under {LINE_LIMIT >> 20} MiB, both ways"),
        ("tools, commands", f"{offered.TOOL_LIMIT} each"),
        ("shortcuts", f"{registrations._SHORTCUTS}"),
        ("prompt sections", f"{registrations._SECTIONS}, of {registrations._SECTION >> 10} KiB each"),
        ("names of events subscribed to", f"{registrations._EVENTS}"),
        (
            "interceptors, each of the other kinds of `register`",
            f"{registrations._WATCHES}, {registrations._OFFERS}",
        ),
        ("models of a provider", f"{registering._PROVIDER_MODELS:,}"),
        (
            "a description, a schema",
            f"{offered.DESCRIPTION_LIMIT >> 10} KiB, {offered.SCHEMA_LIMIT >> 10} KiB",
        ),
        ("text of a result that the model sees", f"{limits.MODEL_TEXT_LIMIT >> 10} KiB;"),
        ("blocks of a result", f"{limits.BLOCK_LIMIT:,}"),
        ("waiting to be written to it", f"{bounds.calls >> 20} MiB of questions, beyond which they fail; "),
        ("mistakes of one process that the user is told", f"{told}; the next {logged - told} are in its log"),
    ):
        assert _second(rows, what).startswith(expected), what
    assert f"; {bounds.events >> 20} MiB of events" in _second(rows, "waiting to be written to it")
    assert offered.COMMAND_LIMIT == offered.TOOL_LIMIT


def test_the_numbers_beside_the_frames_are_those_of_the_code() -> None:
    ours, theirs = _frames("From the extension"), _frames("From the host")
    assert f"Up to {handshake._STRAY_LINES} lines or {handshake._STRAY_BYTES >> 10} KiB" in ours["hello"]
    assert f"up to {limits.IMAGE_LIMIT:,} of them" in ours["tool_result"]
    assert f"up to {limits.SYSTEM_PROMPT_LIMIT >> 20} MiB" in ours["event_intercept_response"]
    assert f"The last {notes._KEPT} are kept" in ours["notify"]
    assert f"A call has {inbound._CALL_LIMIT:g} s" in ours["call_tool"]
    assert f"{chores._AT_ONCE} run at the same time, {chores._WAITING}\nmore wait" in ours["call_tool"]
    waiting = f"{chores._AT_ONCE} are at work at the same time, {extension._REQUESTS:,} more wait"
    assert waiting in ours["host_request"]
    assert f"1 to {registering._NAME} characters" in _rows(ours["register"], "name")[0]
    most = f"At most {limits.RELAY_LIMIT >> 10} KiB and {limits.RELAY_BLOCKS} blocks"
    assert most in theirs["tool_result"]
    assert f"cut after {limits.TEXT_LIMIT:,} characters" in _section(PROTOCOL, "Events")
    assert (foreign.DEPTH, words._UNASKED, peer._LONG_LINES) == (4, 3, 3)  # spelt out in the page


def _rows_of(title: str) -> list[str]:
    return re.findall(r"^\| `(\w+)`", _section(MANIFEST, title), re.MULTILINE)


@pytest.mark.parametrize(("title", "shape"), [("Fields", Manifest), ("guard", Guard), ("limits", Limits)])
def test_every_field_of_a_manifest_has_a_row_and_nothing_else_has_one(title: str, shape: Any) -> None:
    # The file decides the dialect, and some are for one of them only.
    of_one = {"entry", "pipes", "capabilities", "defaults"}
    assert sorted(_rows_of(title)) == sorted(set(shape.__struct_fields__) - of_one - {"dialect"})
    assert sorted(_rows_of("manifest.yaml")) == sorted({"runtime", *of_one})


def test_the_limits_without_a_word_are_those_of_the_code() -> None:
    section, usual = _section(MANIFEST, "limits"), msgspec.structs.asdict(allowance._USUAL)
    said = {name: f"{limit:,} |" for name, limit in usual.items() if limit}
    said |= {"processes": f"{allowance._MORE_PROCESSES:,} more than there are |", "cpu_seconds": "no limit |"}
    assert said.keys() == usual.keys()
    for name, expected in said.items():
        (row,) = _rows(section, name)
        assert row.split(" | ", 2)[2].startswith(expected), name
    page = " ".join(_section(SECURITY, "Limits").split())
    for limit in (*filter(None, usual.values()), allowance._MORE_PROCESSES):
        assert f"{limit:,}" in page
    assert f"`nice` {allowance._NICE}" in page and f"`nice` {allowance._NICE}" in section


def test_every_permission_has_a_row_that_says_who_enforces_it_and_nothing_else_has_one() -> None:
    rows = [row for row in _section(MANIFEST, "permissions").split("\n") if row.startswith("| `") and "[]" not in row]
    words = {
        name: name if name in permissions._FIXED else name.partition(":")[0] for row in rows for name in _first(row)
    }
    assert set(words.values()) == {*permissions._WHOLE, *permissions._ARGUMENTS, *permissions._FIXED}
    (held,) = [row for row in _section(SECURITY, "What it may do").split("\n") if row.startswith("| `")]
    by = dict(zip(("hilt", "the sandbox"), held.split(" | "), strict=True))
    for row in rows:
        enforcer = row.split(" | ")[-1].removesuffix(" |")
        assert f"`{words[_first(row)[0]]}" in by[enforcer], row
    assert f"At most {manifests._MOST_PERMISSIONS}" in _rows(_section(MANIFEST, "Fields"), "permissions")[0]


def _first(row: str) -> list[str]:
    """The code in the first cell of a row."""
    return re.findall(r"`([^`]+)`", row.split(" | ")[0])


def test_what_a_permission_refuses_is_in_the_protocol() -> None:
    section = _section(PROTOCOL, "Permissions")
    needed = {capabilities.READ, capabilities.WRITE, capabilities.SUBMIT, capabilities.CALL}
    rows = [row.split(" | ") for row in section.split("\n") if row.startswith("| `")]
    assert {name for row in rows for name in re.findall(r"`([^`]+)`", row[1])} == needed
    told = next(row[0] for row in rows if capabilities.READ in row[1])
    assert [event for event in capabilities._SAID - set(EVENTS) if f"`{event}`" not in told] == []
    judged = next(row[0] for row in rows if capabilities.WRITE in row[1] and "intercept" in row[0])
    assert [event for event in capabilities._WORDED if f"`{event}`" not in judged] == []


def test_every_level_of_the_sandbox_is_described() -> None:
    assert tuple(_first(row)[0] for row in _levels()) == STRICTNESS == get_args(SandboxLevel)


def _levels() -> list[str]:
    return [row for row in _section(SECURITY, "The sandbox").split("\n") if row.startswith("| `")]


def test_the_other_numbers_of_managing_extensions_are_those_of_the_code() -> None:
    said, fields = " ".join(_text(SECURITY).split()), " ".join(_text(MANIFEST).split())
    assert f"first {consent._DEAF * 1000:g} ms" in said and f"`hilt {terminal.MARK}`" in said
    assert (
        f"at most {manifests._LARGEST >> 20} MiB" in fields and f"at most {manifests._LARGEST_YAML >> 10} KiB" in fields
    )
    assert f"first {programs.HEAD >> 10} KiB" in fields
    assert (minds._AGENTS, background._AT_ONCE) == (4, 4)  # spelt out there


@pytest.mark.parametrize("field", RANGED)
def test_the_range_and_the_default_of_a_number_are_those_of_the_code(field: str, tmp_path: Path) -> None:
    part, _, name = field.rpartition(".")
    wrong: dict[str, Any] = {name: "wrong"}
    manifest = {"name": "x", "exec": "y", **({part: wrong} if part else wrong)}
    (tmp_path / "extension.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(ManifestError, match="whole number") as refused:
        read_manifest(tmp_path)
    bounds = re.search(r"from (-?\d+) to (\d+)", refused.value.message)
    assert bounds
    low, high = (f"{int(number):,}".replace("-", "−") for number in bounds.groups())
    (row,) = _rows(_section(MANIFEST, part or "Fields"), name)
    assert f"| {low} to {high} |" in row
    default = getattr({"": Manifest(""), "guard": Guard(), "limits": Limits()}[part], name)
    assert default is None or re.search(rf"\| {default:,}( \||; in `manifest.yaml`)", row)


def test_where_the_other_manifest_has_another_default_it_is_named() -> None:
    (row,) = _rows(_section(MANIFEST, "Fields"), "tool_timeout_ms")
    assert f"in `manifest.yaml` {manifests._TOOL_TIMES['jsonrpc']:,} |" in row


def test_the_example_of_a_manifest_is_the_one_that_ships() -> None:
    shown = next(fence for fence in fences_of(MANIFEST) if fence.language == "json")
    assert json.loads(shown.text) == json.loads(_text(ROOT / "examples/extensions/project-kit/extension.json"))


def test_the_numbers_of_supervision_are_those_of_the_code() -> None:
    text = " ".join((_text(LIFECYCLE) + _text(INTERCEPTION)).split())
    delays = [f"{supervisor._FIRST_DELAY * 2**crash:g}" for crash in range(supervisor._CRASHES - 1)]
    for expected in (
        f"after {', '.join(delays[:-1])} and {delays[-1]} s, each a quarter more or less",
        f"The {supervisor._CRASHES}th end within {supervisor._WINDOW / 60:g} minutes",
        f"{supervisor._DRAIN:g} s to finish what it is busy with",
        f"last {stderr._LAST_LINES} lines",
        f"two files of {stderr._LOG >> 20} MiB",
        f"waited for {guards._IMPATIENCE:g} s only",
    ):
        assert expected in text, expected
    assert (supervisor._JITTER, guards._TRUSTED) == (0.25, 3)  # spelt out there


def test_every_state_of_an_extension_is_described() -> None:
    section = _section(LIFECYCLE, "States")
    assert [state for state in get_args(ExtensionState) if not _rows(section, state)] == []


def test_what_each_host_has_is_what_the_sdks_go_by() -> None:
    features = json.loads(_text(ROOT / "spec/features.json"))["features"]
    hosts = (
        ("frames", frames_types.HOST_CAPABILITIES),
        ("frames", ()),
        ("jsonrpc", jsonrpc_types.HOST_CAPABILITIES),
        ("jsonrpc", ()),
    )
    rows = [
        " | ".join(["| " + one["words"], *("✓" if _offered(one[dialect], said) else "–" for dialect, said in hosts)])
        for one in features.values()
    ]
    section = _section(ROOT / "docs/concepts/dialects.md", "What each host has")
    assert re.findall(r"^(\| [^*\n|].*) \|$", section, re.MULTILINE) == rows
    assert f"zot {frames_types.REFERENCE_VERSION}" in section


def _offered(rule: str, said: tuple[str, ...]) -> bool:
    return rule == "base" or not set(rule.split("|")).isdisjoint(said)
