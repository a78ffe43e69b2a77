"""Shell commands that the user runs themselves, from where they talk to the model.

The user needs nobody's permission: no guard is heard, nothing is asked, and no extension can change it or have it
done. It is the `bash` tool that runs them, so its limits hold, and the jail too. Live output goes to whoever asked;
unless it is private, the model comes to know of it all with its next turn.
"""

import re
from collections.abc import Awaitable, Callable

from hilt.agent.session import Session
from hilt.agent.stopping import Stop, Stopped
from hilt.errors import UsageError
from hilt.model.content import text_of
from hilt.model.contributions import Invocation, ToolOutput
from hilt.model.conversation import user_text

REPORT = "I ran a shell command myself"
"""So begins what the model is told: whoever has shown the command already need not show that as well."""

_STOPPED = "I stopped it before its end"
_TOLD = " This is the command and its output:"
_KEPT = 30_000
"""Characters of the output of a command that is stopped."""


def parsed(text: str) -> tuple[str, bool] | None:
    """The command in `!command`, and whether the model is to know of it: not in `!!command`. None for other text."""
    if not text.startswith("!"):
        return None
    shared = not text.startswith("!!")
    command = text.removeprefix("!").removeprefix("!").strip()
    return (command, shared) if command else None


async def run(
    session: Session, command: str, progress: Callable[[str], Awaitable[None]], *, share: bool = True
) -> ToolOutput:
    """See a command through. `session.abort` ends it, and then what it wrote until then is the answer.

    Raises `HiltError` when it cannot be started; cancelling ends it without a trace.
    """
    shell = session.parts.shell
    if shell is None:
        raise UsageError("shell commands cannot be run here")
    session.words.asked()
    written = ""

    async def follow(text: str) -> None:
        nonlocal written
        written = (written + text)[-_KEPT - 1 :]  # one more than is shown: so it is known that there was more
        await progress(text)

    try:
        with session.beside(Stop()) as stop, stop.here():
            output = await shell.invoke(Invocation("", {"command": command}, follow))
    except Stopped:
        output = _stopped(command, written)
    if share:
        await session.mention(user_text(report(output)))
    return output


def report(output: ToolOutput) -> str:
    """What the model is told. The output is a stranger's text: no line in it can end the fence around it."""
    text = text_of(output.content)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{REPORT} ({_ending(output)}).{_TOLD}\n\n{fence}\n{text}\n{fence}"


def recalled(told: str) -> tuple[str, ToolOutput] | None:
    """A command and its output, from what the model was told of them. None for other text."""
    if not told.startswith(REPORT):
        return None
    head, gap, body = told.partition(f").{_TOLD}\n\n")
    ending = head.removeprefix(f"{REPORT} (")
    found = re.fullmatch(r"(`{3,})\n(\$ .*)\n\1", body, re.DOTALL)
    if not gap or found is None:
        return None
    code = int(ending.removeprefix("exit ")) if re.fullmatch(r"exit -?\d{1,9}", ending) else None
    stopped = {"ending": "cancelled"} if ending == _STOPPED else {}
    command = found[2].removeprefix("$ ").partition("\n\n")[0]
    return command, ToolOutput.of(found[2], is_error=code != 0, exit_code=code, **stopped)


def _ending(output: ToolOutput) -> str:
    if output.details.get("ending") == "cancelled":
        return _STOPPED
    code = output.details.get("exit_code")
    return "it was killed" if code is None else f"exit {code}"


def _stopped(command: str, written: str) -> ToolOutput:
    if len(written) > _KEPT:
        written = f"… the beginning is left out …\n{written[-_KEPT:]}"
    text = f"$ {command}\n\n{written.rstrip()}\n\n[stopped by the user]"
    return ToolOutput.of(text, is_error=True, exit_code=None, ending="cancelled")
