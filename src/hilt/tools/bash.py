"""The `bash` tool: a shell command, with what it printed and how it ended."""

import asyncio
import errno

from msgspec import Struct

from hilt.errors import ToolError
from hilt.model.content import Args
from hilt.model.contributions import Effect, Invocation, Preview, Tool, ToolOutput
from hilt.tools.arguments import parse
from hilt.tools.job import Command
from hilt.tools.output import discard
from hilt.tools.shell import Finished, Shell
from hilt.tools.workspace import Workspace

_LONGEST_ECHO = 500

_SCHEMA = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "minLength": 1, "description": "Command line for /bin/sh"},
        "timeout": {
            "type": "number",
            "exclusiveMinimum": 0,
            "description": "Seconds after which the command and all it started are killed; none by default",
        },
    },
    "required": ["command"],
    "additionalProperties": False,
}


class _BashArgs(Struct, frozen=True):
    command: str
    timeout: float | None = None


def bash_tool(workspace: Workspace, shell: Shell) -> Tool:
    async def invoke(invocation: Invocation) -> ToolOutput:
        args = parse(invocation.args, _BashArgs)
        _check(args, workspace)
        if workspace.jail.on:  # a hostile command line can take a second to take apart
            await asyncio.to_thread(workspace.jail.check_command, args.command, workspace.cwd)
        command = Command(args.command, workspace.cwd, workspace.outputs, workspace.environment, args.timeout)
        try:
            finished = await shell.run(command, invocation.progress)
        except (OSError, ValueError) as error:
            raise _not_started(error, args.command, workspace) from error
        if finished.shown.cut and not finished.background:
            await asyncio.to_thread(workspace.conceal, finished.output)
        return _output(args, finished)

    async def preview(raw: Args) -> Preview:
        return Preview("command", parse(raw, _BashArgs).command)

    return Tool(
        "bash",
        "Run a command with /bin/sh in the working directory; answers with its merged output and exit code. Input is "
        "empty, so nothing can be asked. Long output is cut in the middle and kept whole in a file. Background "
        "processes live on until the end of the session.",
        _SCHEMA,
        invoke,
        effect=Effect.EXECUTE,
        preview=preview,
    )


def _check(args: _BashArgs, workspace: Workspace) -> None:
    if not args.command.strip():
        raise ToolError("command is empty", hint="give a command line")
    if args.timeout is not None and not args.timeout > 0:
        raise ToolError("timeout must be more than 0 seconds", hint="leave it out for no timeout")
    if not workspace.cwd.is_dir():
        raise ToolError(f"the working directory {workspace.cwd} no longer exists", hint="create it again")


def _not_started(error: OSError | ValueError, command: str, workspace: Workspace) -> ToolError:
    if isinstance(error, ValueError):
        return ToolError(f"the command cannot be passed to a shell: {error}", hint="remove NUL and broken characters")
    if error.errno == errno.E2BIG:
        return ToolError(
            f"the command is too long for the system ({len(command)} characters)",
            hint="write it to a script file first, then run that",
        )
    where = f" ({error.filename})" if error.filename else ""
    return ToolError(
        f"the command could not be started in {workspace.cwd}: {error.strerror or error}{where}",
        hint="check the working directory, free memory and free disk space",
    )


def _output(args: _BashArgs, finished: Finished) -> ToolOutput:
    kept = finished.shown.cut or finished.background
    if not kept:
        discard(finished.output)
    echo = args.command if len(args.command) <= _LONGEST_ECHO else args.command[:_LONGEST_ECHO] + " …"
    return ToolOutput.of(
        f"$ {echo}\n\n{finished.shown.text.rstrip()}\n\n{_ending(args, finished)}",
        is_error=finished.exit_code != 0,
        exit_code=finished.exit_code,
        ending=finished.ending,
        seconds=round(finished.seconds, 3),
        cut=finished.shown.cut,
        background=finished.background,
        output=str(finished.output) if kept else None,
    )


def _ending(args: _BashArgs, finished: Finished) -> str:
    match finished.ending:
        case "timeout":
            text = f"[timed out after {args.timeout:g}s; the command and all it started were killed]"
        case "flood":
            text = "[killed: it wrote too much output, see the file]"
        case _ if finished.exit_code is None:
            text = "[killed: the session is closing]"
        case _:
            text = f"[exit {finished.exit_code}]"
    if finished.shown.cut:
        text += f" (full output: {finished.output})"
    elif finished.background:
        text += f" (still running in the background, its output goes to: {finished.output})"
    return f"{text}  Took {finished.seconds:.1f}s"
