"""The text in an editor of the user's own: the terminal is that program's until it ends.

Owns the file that they share and the handing over. The session goes on meanwhile; what it shows is drawn afterwards.
"""

import asyncio
import os
import shlex
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from textual.app import App

from hilt.errors import HiltError, UsageError

_ENDING = 2.0
"""Seconds that it has to end when everything does."""


async def edited(app: App[None], text: str) -> str:
    """What the user made of it. Raises `HiltError` when that is not to be had: then it is as it was."""
    command = _command()
    with tempfile.TemporaryDirectory(prefix="hilt-") as folder:
        file = Path(folder, "prompt.md")
        await asyncio.to_thread(file.write_text, text)
        # Nothing is drawn before it is ours again: nobody would take away what is written.
        with app.batch_update(), app.suspend(), _deaf():
            trouble = await _run([*command, str(file)])
        if trouble:
            raise HiltError(f"{command[0]} {trouble}", hint="set VISUAL or EDITOR to an editor that can be run here")
        try:
            return (await asyncio.to_thread(file.read_text)).removesuffix("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise HiltError(f"what was written cannot be read: {error}") from error


def _command() -> list[str]:
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        if command := shlex.split(named):
            return command
    except ValueError:
        pass
    raise UsageError(f"EDITOR is no command: {named}", hint="set it to one, such as `vi`")


async def _run(command: list[str]) -> str:
    """What went wrong with it, if anything did."""
    try:
        process = await asyncio.create_subprocess_exec(*command)
    except OSError as error:
        return f"cannot be run: {error.strerror}"
    try:
        code = await process.wait()  # as long as the user likes
    except asyncio.CancelledError:
        process.terminate()
        async with asyncio.timeout(_ENDING):
            await process.wait()
        raise
    return f"ended with {code}" if code else ""


@contextmanager
def _deaf() -> Iterator[None]:
    """Ctrl-C in the other program means that one, but the terminal would tell us too."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
