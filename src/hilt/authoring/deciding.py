"""The interceptors of one extension, asked one after the other as hilt asks them, and what comes of that together.

What a single one is asked, and what its answer says, is the business of `speaking.verdicts`.
"""

from hilt.authoring.dialogue import Dialogue
from hilt.authoring.speaking.tongue import Occasion, Verdict
from hilt.authoring.speaking.verdicts import after_request, after_text, frame, frame_verdict, request, verdict
from hilt.errors import Departure, FrameError

_VERDICT = 5.0
_REVIEW = 30.0
"""Seconds on the clock of the conversation after which hilt gives up what it asked."""
_CALL = "call_1"


async def decision(dialogue: Dialogue, occasion: Occasion, patience: float) -> Verdict:
    """What they let happen; each sees what those before it made of it. Raises `Departure` when nobody decides it."""
    decided: Verdict | None = None
    if dialogue.asked_by_frame(occasion.event):
        question = dialogue.ask(occasion.event, lambda id_: frame(id_, occasion), _VERDICT)
        decided = frame_verdict(await dialogue.answer(question, patience), occasion)
    for one in dialogue.interceptors(occasion.event):
        if decided and decided.verdict == "block":
            break
        current = _changed(occasion, decided)
        method, params = request(one.name, current, _CALL)
        try:
            latest = verdict(await dialogue.request(method, params, _VERDICT, patience), one.name, current)
        except FrameError as error:
            raise Departure(f"the verdict of {one.name} cannot be used: {error.message}") from None
        decided = latest if latest.verdict != "allow" or decided is None else decided
    if decided is None:
        raise Departure(f"it does not intercept {occasion.event}")
    return decided


async def review(dialogue: Dialogue, tool: str, text: str, *, failed: bool, patience: float) -> str:
    """What they make of a tool's result. Raises `Departure` when there are none that see it."""
    interceptors = dialogue.interceptors()
    if not interceptors:
        raise Departure("it has registered no interceptor that sees results")
    for one in interceptors:
        method, params = after_request(one.name, tool, text, failed=failed, call_id=_CALL)
        try:
            text = after_text(await dialogue.request(method, params, _REVIEW, patience), text)
        except FrameError as error:
            raise Departure(f"what {one.name} made of the result cannot be used: {error.message}") from None
    return text


def _changed(occasion: Occasion, decided: Verdict | None) -> Occasion:
    if decided is None or decided.to is None:
        return occasion
    if occasion.event == "tool_call":
        return Occasion(occasion.event, occasion.tool, decided.to)
    return Occasion(occasion.event, text=decided.to, step=occasion.step)
