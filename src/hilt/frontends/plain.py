"""`hilt -p`: the answer on stdout, everything else on stderr."""

import sys
from collections.abc import Callable
from typing import TextIO

from hilt.agent.run import Outcome
from hilt.agent.session import Session
from hilt.frontends.asides import aside, signed
from hilt.frontends.oneshot import asked_of, perform
from hilt.frontends.terminal import clean, hanging, one_line
from hilt.model.content import Args, Image, Text, ToolCall, text_of
from hilt.model.events import (
    AssistantMessageAdded,
    AssistantReplaced,
    CompactionDone,
    CompactionStarted,
    Displayed,
    Event,
    Failed,
    Inserted,
    Intercepted,
    Retrying,
    ToolCalled,
    ToolResultAdded,
)
from hilt.model.masking import Mask

_RESULT_LINES = 8
_WIDTH = 160


async def run(session: Session, text: str, mask: Mask) -> Outcome:
    """Send one prompt, or run one slash command, and print what comes of it."""
    # What the owner of a command shows is the answer, and goes to stdout.
    progress = Progress(sys.stderr, mask, answers=lambda: asked_of(session, text))
    answer = _Answer(mask)
    async with session.bus.faced(progress):
        outcome = await perform(session, text, answer.say)
    if outcome.stop not in ("error", "aborted"):
        answer.say(outcome.text)
    if answer.trouble:
        error = f"the answer could not be written to stdout: {answer.trouble}"
        progress.say(f"hilt: error: {error}\nhint: the session has it; see `hilt sessions show`")
        return Outcome("error", error)
    if outcome.stop == "length":
        progress.say("hilt: the reply was cut off at the model's output limit")
    elif outcome.stop == "end" and not (
        outcome.text or outcome.handled or progress.suppressed or session.known_command(text)
    ):
        progress.say("hilt: the model ended without saying anything")
    return outcome


class _Answer:
    """What goes to stdout."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self.trouble = ""
        """Why it could not be written, if so."""

    def say(self, text: str) -> None:
        answer = self._mask.text(clean(text) if sys.stdout.isatty() else text)
        if answer and not self.trouble:
            self.trouble = _write(sys.stdout, answer if answer.endswith("\n") else answer + "\n")


class Progress:
    """Shows what happens, a few plain lines for each thing, readable without colour."""

    def __init__(self, out: TextIO, mask: Mask, *, answers: Callable[[], str]) -> None:
        """`answers` names whose words are shown elsewhere."""
        self._out = out
        self._mask = mask
        self._answers = answers
        self.suppressed = False
        """An interceptor wants the last message not to be shown."""

    async def __call__(self, event: Event) -> None:
        match event:
            case AssistantMessageAdded(content=content) if any(isinstance(block, ToolCall) for block in content):
                if (text := text_of(content)).strip():
                    self.say(text)  # words before tool calls; the last message goes to stdout
            case AssistantReplaced(suppressed=suppressed):
                self.suppressed = suppressed
            case ToolCalled(name=name, args=args):
                self.say(hanging(f"→ {name} {_gist(args)}".rstrip()))
            case ToolResultAdded():
                self._result(event)
            case Retrying():
                delay = f"{event.delay_ms / 1000:.1f} s"
                self.say(hanging(f"retry {event.attempt} of {event.attempts} in {delay}: {event.reason}"))
            case CompactionStarted(tokens=tokens):
                self.say(f"compacting the conversation (about {tokens} tokens)…")
            case CompactionDone():
                self.say("compacted; the session file keeps the whole of it")
            case Displayed(extension=extension, text=text) if extension != self._answers():
                self.say(signed(f"[{extension}]", text))
            case Inserted(extension=extension, text=text):
                self.say(signed(f"[{extension}] for your input:", text))
            case Intercepted(outcome="blocked"):
                self._blocked(event)
            case Intercepted(outcome="changed"):
                self._changed(event)
            case Failed(message=message, hint=hint):
                self.say(f"hilt: error: {hanging(message)}" + (f"\nhint: {hanging(hint)}" if hint else ""))
            case _:
                if text := aside(event):
                    self.say(text)

    def _blocked(self, event: Intercepted) -> None:
        last = event.decisions[-1]
        if last.decision != "fail":  # of a failure a notice tells
            what = event.name or event.event.replace("_", " ")
            self.say(hanging(f"  ✋ {last.extension} refused {what}: {last.reason}"))

    def _changed(self, event: Intercepted) -> None:
        for decided in event.decisions:
            if decided.decision == "rewrite":
                gist = _gist(decided.changed)
                self.say(hanging(f"  ✎ {decided.extension} changed the arguments of {event.name}: {gist}"))
            elif decided.decision == "replace" and event.event == "assistant_message":
                self.say(f"hilt: {decided.extension} replaced what the model said")

    def _result(self, event: ToolResultAdded) -> None:
        lines = "\n".join(_shown(block) for block in event.content).strip().splitlines()
        for line in lines[:_RESULT_LINES]:
            self.say("  " + one_line(line, _WIDTH) if line.strip() else "")
        if len(lines) > _RESULT_LINES:
            self.say(f"  … {len(lines) - _RESULT_LINES} more lines")
        if event.is_error:
            self.say(hanging(f"  ✗ {event.name} did not succeed"))

    def say(self, text: str) -> None:
        _write(self._out, self._mask.text(clean(text)) + "\n")


def _write(out: TextIO, text: str) -> str:
    """Why it could not be written, if so. A reader that left has what it wanted: that is no reason."""
    try:
        # A terminal without the character, or half a surrogate pair, must not cost the answer.
        out.write(text.encode(out.encoding, "replace").decode(out.encoding))
        out.flush()
    except BrokenPipeError:
        return ""
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _gist(args: Args) -> str:
    """The argument that says most about a call."""
    for name in ("command", "path", "file_path", "url", "query", "name"):
        if isinstance(value := args.get(name), str):
            return one_line(value, _WIDTH)
    return one_line(" ".join(f"{name}={value}" for name, value in args.items()), _WIDTH)


def _shown(block: Text | Image) -> str:
    return block.text if isinstance(block, Text) else f"[image, {block.mime_type}, {len(block.data)} bytes]"
