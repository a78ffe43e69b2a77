"""SIGKILL at any moment: what was acknowledged is there, nothing else is, and the session goes on.

`HILT_KILL_ROUNDS` sets how many random kills there are in all; `make soak` has many.
"""

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hilt.model.content import text_of
from hilt.model.conversation import Message, ToolMessage, UserMessage
from hilt.sessions.log import SessionLog
from support.agent import calls, running, says, script
from support.killing import Ended, Place, Said, accepted, recorded

ROUNDS = int(os.environ.get("HILT_KILL_ROUNDS", "64"))
PARTS = 8
JSON = ("--json", "--provider", "script", "--script")
RPC = ("rpc", "--provider", "script", "--script")
BACK = says("I am back.", expect={"role": "user", "contains": "go on"})


def task() -> list[dict[str, Any]]:
    """A dozen turns with every kind of record: words, failures, results large and small, changed files."""
    turns: list[dict[str, Any]] = []
    for number in range(4):
        name = f"file{number}.txt"
        content = "".join(f"{number}: line {line}\n" for line in range(1, (4000 if number == 2 else 4)))
        turns += [
            {
                "content": [
                    {"type": "text", "text": f"This is step {number}, in a few words."},
                    {"type": "tool_call", "name": "bash", "args": {"command": f"echo a {number}; sleep 0.01; echo b"}},
                    {"type": "tool_call", "name": "write", "args": {"path": name, "content": content}},
                ],
                "usage": {"input": 10, "output": 5},
            },
            calls(("read", {"path": name}), ("read", {"path": "missing.txt"}), delay_ms=5),
            calls(("edit", {"path": name, "edits": [{"oldText": f"{number}: line 2\n", "newText": ""}]}), ("fly", {})),
        ]
    return [*turns, says("That is all.")]


# At random moments


@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(PARTS))
def test_killed_at_random_moments_it_keeps_what_it_acknowledged_and_resumes(tmp_path: Path, part: int) -> None:
    run = _run_rpc if part % 4 == 0 else _run_json
    chance = random.Random(part)
    whole, start, seconds = _uninterrupted(Place.make(tmp_path / "whole"))
    rounds = max(1, ROUNDS // PARTS)
    cut_short = 0
    for number in range(rounds):
        # One moment in each slice of the run, so that few rounds still cover all of it.
        moment = start + (seconds - start) * (number + chance.random()) / rounds
        place = Place.make(tmp_path / str(number))
        ended = run(place, moment)
        kept = place.plain(recorded(place.messages()))
        said = place.plain(ended.acknowledged)
        assert kept[: len(said)] == said, f"acknowledged and lost, killed after {moment:.3f} s"
        assert kept == whole[: len(kept)], f"invented, killed after {moment:.3f} s"
        _resume(place, kept, by_path=number % 2 == 1)
        cut_short += len(kept) < len(whole)
        if ended.code == 0:  # it was quicker than the first time: aim earlier
            start, seconds = min(start, start * ended.seconds / seconds), min(seconds, ended.seconds)
    assert cut_short >= rounds // 4  # the moments are within the run and not behind it


def _uninterrupted(place: Place) -> tuple[list[Said], float, float]:
    """All that is said, a moment shortly before the first record, and how long it takes in all."""
    ended = place.run(*JSON, place.script("task", *task()), "do it")
    assert ended.code == 0, ended.err
    messages = place.messages()
    whole = place.plain(recorded(messages))
    assert whole == place.plain(ended.acknowledged)
    assert len(whole) == 1 + 12 * 3 + 1  # twelve turns with two results each, the question and the last words
    working = (messages[-1].time - messages[0].time).total_seconds()
    return whole, 0.8 * (ended.seconds - working), ended.seconds


def _run_json(place: Place, seconds: float) -> Ended:
    return place.killed_after(seconds, *JSON, place.script("task", *task()), "do it")


def _run_rpc(place: Place, seconds: float) -> Ended:
    lines = [{"type": "prompt", "id": "1", "message": "do it"}]
    return place.killed_after(seconds, *RPC, place.script("task", *task()), lines=lines)


def _resume(place: Place, kept: list[Said], *, by_path: bool) -> None:
    """One more turn by the real program; then the file holds what it held, and that turn."""
    accepted(place.messages())
    path = place.session()
    which = ("--session", str(path)) if path and by_path else ("-c",)
    ended = place.run(*which, "-p", "--provider", "script", "--script", place.script("more", BACK), "go on")
    assert (ended.code, ended.out) == (0, b"I am back.\n"), ended.err
    messages = place.messages()
    accepted(messages)
    now = place.plain(recorded(messages))
    assert now[: len(kept)] == kept
    assert [role for role, *_ in now[len(kept) :]] == ["user", "assistant"]


# At every step of a turn

STUCK = "echo working; for i in $(seq 200); do [ -e stop ] && exit; sleep 0.05; done"
"""Runs until it is told to stop, or for ten seconds: nobody kills it when hilt is killed."""
TURN = [
    {
        "content": [
            {"type": "text", "text": "Let me see about that."},
            {"type": "tool_call", "name": "bash", "args": {"command": "echo first"}},
            {"type": "tool_call", "name": "bash", "args": {"command": STUCK}},
        ]
    }
]
STEPS_BEFORE_A_RESULT = ["assistant_message", "tool_call", "turn_end", "tool_progress", "tool_result"]
STEPS_OF_A_TURN = ["user_message", "turn_start", "assistant_start", "text_delta", "tool_use_start", "usage"]


@pytest.mark.parametrize("step", STEPS_OF_A_TURN + STEPS_BEFORE_A_RESULT)
async def test_killed_at_any_step_of_a_turn_it_resumes_with_a_provider_that_wants_results(
    tmp_path: Path, step: str
) -> None:
    place = Place.make(tmp_path)
    with _released(place):
        ended = place.killed_when(lambda event: event["type"] == step, *JSON, place.script("turn", *TURN), "look")
        kept = place.messages()
        assert place.plain(recorded(kept))[: len(ended.acknowledged)] == place.plain(ended.acknowledged)
        sent = await _strictly(place)
        _resume(place, place.plain(recorded(place.messages())), by_path=True)
    assert isinstance(sent[0], UserMessage) and text_of(sent[0].content) == "look"
    if step in STEPS_BEFORE_A_RESULT:
        results = sent[2]
        assert isinstance(results, ToolMessage)
        stuck = results.results[1]
        assert stuck.is_error and "outcome is unknown" in text_of(stuck.content)
    if step == "tool_result":
        assert "first\n" in text_of(sent[2].results[0].content)  # type: ignore[union-attr]  # checked above


async def test_killed_after_done_nothing_is_missing(tmp_path: Path) -> None:
    place = Place.make(tmp_path)
    turns = place.script("turn", calls(("bash", {"command": "echo one"})), says("Two."))
    place.killed_when(lambda event: event["type"] == "done", *JSON, turns, "count")
    assert [role for role, *_ in recorded(place.messages())] == ["user", "assistant", "tool", "assistant"]
    await _strictly(place)


@pytest.mark.parametrize(("step", "delay", "length"), [("compact_start", 10_000, 6), ("compact_done", 0, 5)])
async def test_killed_while_compacting_the_conversation_is_the_old_one_and_afterwards_the_new(
    tmp_path: Path, step: str, delay: int, length: int
) -> None:
    place = Place.make(tmp_path)
    turns = place.script("turns", *map(says, ("one", "two", "three")), says("They counted.", delay_ms=delay))
    lines = [{"type": "prompt", "message": f"number {number}"} for number in (1, 2, 3)]
    place.killed_when(lambda event: event["type"] == step, *RPC, turns, lines=[*lines, {"type": "compact"}])
    messages = place.messages()
    assert len(messages) == length
    first = messages[0]
    assert isinstance(first, UserMessage) and first.summary is (step == "compact_done")
    sent = await _strictly(place)
    assert sent[:length] == tuple(messages)
    _resume(place, place.plain(recorded(place.messages())), by_path=False)


async def _strictly(place: Place) -> tuple[Message, ...]:
    """Go on with a provider that refuses unpaired calls. What it was sent."""
    path = place.session()
    assert path
    with SessionLog.open(path) as log:
        async with running(script(place.cwd, says("Accepted.")), log=log) as harness:
            outcome = await harness.say("and now?")
            assert outcome.text == "Accepted.", outcome.error
            return harness.provider.requests[-1].messages


@contextmanager
def _released(place: Place) -> Iterator[None]:
    """Let a command that outlived its hilt end when the test does."""
    try:
        yield
    finally:
        (place.cwd / "stop").touch()
