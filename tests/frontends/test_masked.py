"""A key that comes in pieces is never shown, and nothing else is changed, lost or moved."""

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hilt.frontends.masked import Masked
from hilt.model.content import Text
from hilt.model.conversation import Usage
from hilt.model.events import (
    AssistantMessageAdded,
    Done,
    Event,
    Failed,
    Noticed,
    Retrying,
    ToolProgressed,
    ToolResultAdded,
    TurnEnded,
    UsageReported,
)
from hilt.model.masking import MASK, Mask
from hilt.model.stream import TextDelta, ThinkingDelta, ToolUseArgs, ToolUseEnd, ToolUseStart
from support.agent import says
from support.hilt_process import Hilt
from support.properties import patient

KEY = "sk-ant-0123456789"
# Few letters, so that keys overlap themselves and each other; many, so that nothing is special. No brackets: those
# of the mask itself could complete a key.
SECRETS = st.text("ab", min_size=8, max_size=14) | st.text(
    st.characters(exclude_characters="[]", exclude_categories=["Cs"]), min_size=8, max_size=20
)


def around(secret: str) -> st.SearchStrategy[str]:
    """Texts with beginnings, ends and repetitions of a secret in them."""
    letters = st.text(secret + " x", max_size=12)
    parts = st.integers(0, len(secret)).map(lambda size: secret[:size]) | letters | st.just(secret)
    return st.lists(parts, max_size=6).map("".join)


def cut(text: str, seed: int) -> list[str]:
    """The text in pieces; some may be empty."""
    choice = random.Random(seed)
    places = sorted(choice.choices(range(len(text) + 1), k=choice.randint(0, len(text) + 2)))
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]


def said(event: Event) -> str:
    match event:
        case TextDelta(delta=text) | ThinkingDelta(delta=text) | ToolUseArgs(delta=text) | ToolProgressed(text=text):
            return text
    return ""


def shown(mask: Mask, *events: Event) -> list[Event]:
    masked = Masked(mask)
    return [one for event in events for one in masked.show(event)]


def joined(events: list[Event], kind: type[Any] = object, id_: str = "") -> str:
    return "".join(said(e) for e in events if isinstance(e, kind) and (not id_ or getattr(e, "id", "") == id_))


@patient
@given(st.data(), st.lists(SECRETS, min_size=1, max_size=3), st.integers())
def test_however_a_text_is_cut_no_key_is_in_what_is_shown(data: st.DataObject, secrets: list[str], seed: int) -> None:
    assume(not any(secret in MASK for secret in secrets))
    text = data.draw(around(secrets[0])) + secrets[0] + data.draw(around(secrets[-1]))
    out = joined(shown(Mask(secrets), *map(TextDelta, cut(text, seed)), Done()))
    assert MASK in out
    assert not [secret for secret in secrets if secret in out]


@patient
@given(st.data(), SECRETS, st.integers())
def test_however_a_text_is_cut_only_keys_are_changed_in_it(data: st.DataObject, secret: str, seed: int) -> None:
    text = data.draw(around(secret))
    out = joined(shown(Mask([secret]), *map(TextDelta, cut(text, seed)), Done()))
    assert out == text.replace(secret, MASK)


@patient
@given(st.lists(st.tuples(st.sampled_from("abc"), st.text(KEY, max_size=5)), max_size=30), st.integers())
def test_streams_that_come_at_the_same_time_do_not_mix(noise: list[tuple[str, str]], seed: int) -> None:
    choice = random.Random(seed)
    waiting: list[list[Event]] = [
        [ToolProgressed("a", piece) for piece in KEY],
        [ToolProgressed("b", piece) for piece in KEY[:-1]],
        [ToolUseArgs("a", piece) for piece in KEY],
        [TextDelta(piece) for piece in f"{KEY}!"],
        [ThinkingDelta(piece) for piece in KEY[:5]],
        [ToolProgressed(f"noise {id_}", piece) for id_, piece in noise],
    ]
    events: list[Event] = []
    while waiting := [stream for stream in waiting if stream]:
        events.append(choice.choice(waiting).pop(0))
    out = shown(Mask([KEY]), *events, Done())
    assert joined(out, ToolProgressed, "a") == joined(out, ToolUseArgs, "a") == MASK
    assert joined(out, ToolProgressed, "b") == KEY[:-1]
    assert joined(out, TextDelta) == f"{MASK}!"
    assert joined(out, ThinkingDelta) == KEY[:5]
    for name in "abc":
        whole = "".join(piece for id_, piece in noise if id_ == name)
        assert joined(out, ToolProgressed, f"noise {name}") == whole.replace(KEY, MASK)


@patient
@given(st.integers())
def test_a_key_that_json_escapes_is_hidden_in_arguments_too(seed: int) -> None:
    odd = 'pa"ss\\word\t-1234'
    text = msgspec.json.encode({"command": f"login {odd}!"}).decode()
    out = joined(shown(Mask([odd]), *(ToolUseArgs("a", piece) for piece in cut(text, seed)), ToolUseEnd("a")))
    assert msgspec.json.decode(out) == {"command": f"login {MASK}!"}


MODEL_STREAMS: list[Event] = [TextDelta("a sk-"), ThinkingDelta("b sk-a"), ToolUseArgs("1", "c s")]
NOW = datetime(2025, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "end",
    [
        UsageReported(Usage(), Usage()),
        AssistantMessageAdded((Text("whole"),), NOW),
        Retrying(2, 4, 10, "busy"),
        TurnEnded("end"),
        Failed("broken"),
        Done(),
    ],
    ids=lambda end: type(end).__name__,
)
def test_what_is_held_back_comes_before_the_event_that_ends_the_answer(end: Event) -> None:
    held: list[Event] = [TextDelta("sk-"), ThinkingDelta("sk-a"), ToolUseArgs("1", "s")]
    before: list[Event] = [TextDelta("a "), ThinkingDelta("b "), ToolUseArgs("1", "c ")]
    assert shown(Mask([KEY]), *MODEL_STREAMS, end) == [*before, *held, end]


def test_what_is_held_back_of_arguments_and_of_output_comes_before_the_end_of_that_call_alone() -> None:
    events: list[Event] = [
        ToolUseStart("1", "bash"),
        ToolUseArgs("1", "s"),
        ToolUseArgs("2", "sk"),
        ToolUseEnd("1"),
        ToolUseEnd("2"),
        TurnEnded("tool_use"),
        ToolProgressed("1", "s"),
        ToolProgressed("2", "sk"),
        Noticed("info", "still at it"),
        ToolResultAdded("2", "bash", is_error=False, content=()),
        ToolResultAdded("1", "bash", is_error=False, content=()),
    ]
    start, args_1, args_2, end_1, end_2, turn, progress_1, progress_2, notice, result_2, result_1 = events
    expected = [start, args_1, end_1, args_2, end_2, turn, notice, progress_2, result_2, progress_1, result_1]
    assert shown(Mask([KEY]), *events) == expected


def test_output_is_not_released_by_what_ends_an_answer() -> None:
    pieces = (ToolProgressed("1", KEY[:5]), TurnEnded("end"), Failed("x"), ToolProgressed("1", KEY[5:]), Done())
    assert joined(shown(Mask([KEY]), *pieces)) == MASK


def test_a_key_that_begins_a_longer_one_is_hidden_when_the_longer_one_does_not_come() -> None:
    mask = Mask([KEY, f"{KEY}-longer"])
    assert joined(shown(mask, TextDelta(KEY), TextDelta("-lon"), Done())) == f"{MASK}-lon"
    assert joined(shown(mask, TextDelta(KEY), TextDelta("-longer"), Done())) == MASK


def test_an_event_that_hides_nothing_passes_as_it_is() -> None:
    for event in (TextDelta("hello"), TextDelta(""), ToolProgressed("1", "x"), Noticed("info", KEY)):
        for mask in (Mask(), Mask([KEY])):
            [one] = Masked(mask).show(event)
            assert one is event


def test_without_a_key_nothing_is_held_back_and_a_key_learned_later_is_hidden_from_then_on() -> None:
    mask = Mask()
    masked = Masked(mask)
    assert masked.show(TextDelta("s")) == [TextDelta("s")]
    mask.add(KEY)
    assert masked.show(TextDelta(KEY[:4])) == []
    mask.add("another-key")
    assert masked.show(TextDelta("-another")) == [TextDelta("sk-a-")]
    assert masked.show(TextDelta("-key.")) == [TextDelta(f"{MASK}.")]


# A key with a space in it, because the scripted model cuts its words there.
SPACED = "sk-test 0123456789abc"
SLOWLY = "; sleep 0.06; ".join(f"printf %s '{letter}'" for letter in SPACED)
TURNS = (
    {
        "content": [
            {"type": "thinking", "text": f"thought {SPACED}."},
            {"type": "text", "text": f"said {SPACED}."},
            {"type": "tool_call", "name": "bash", "args": {"command": f": {SPACED}"}},
            {"type": "tool_call", "name": "bash", "args": {"command": SLOWLY}},
        ]
    },
    says("done"),
)


def check(lines: list[dict[str, Any]]) -> None:
    """Every stream whole, in order, and without the key."""

    def of(kind: str, field: str, id_: str = "") -> str:
        return "".join(line[field] for line in lines if line["type"] == kind and line.get("id", "") == id_)

    assert of("thinking_delta", "delta") == f"thought {MASK}."
    assert of("text_delta", "delta") == f"said {MASK}.done"
    assert msgspec.json.decode(of("tool_use_args", "delta", "call_1_1")) == {"command": f": {MASK}"}
    assert msgspec.json.decode(of("tool_use_args", "delta", "call_1_2")) == {"command": SLOWLY}
    assert of("tool_progress", "text", "call_1_2") == MASK


def test_a_key_that_is_printed_letter_by_letter_is_not_in_the_json_output(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    done = hilt.run("--json", "--api-key", SPACED, *hilt.script(*TURNS), "go")
    assert done.code == 0, done.err
    check(done.events)
    assert SPACED not in done.out


def test_a_key_that_is_printed_letter_by_letter_is_not_in_what_an_rpc_client_reads(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    with hilt.rpc("--api-key", SPACED, *hilt.script(*TURNS)) as rpc:
        check(rpc.prompt("go"))
