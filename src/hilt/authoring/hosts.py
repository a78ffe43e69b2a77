"""A host that is a command: started with the played extensions, and driven over its RPC."""

import asyncio
import os
import shlex
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from hilt.authoring.player import Host, Opener
from hilt.authoring.puppets import json_line
from hilt.authoring.streams import Told
from hilt.authoring.transcripts import Conversation
from hilt.errors import Departure, UsageError
from hilt.transport.channels import Channel
from hilt.transport.launch import Spec
from hilt.transport.lines import TooLong
from hilt.transport.process import Child, started

_ENDING = 20.0
"""Seconds a host has to end once its input has ended."""
_TAIL = 10
_KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV")


def by_command(command: str) -> Opener:
    """Hosts started by this command line, in which `{ext}` is an extension's directory and `{script}` a file for the
    script model. Raises `UsageError`."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--host {command!r}: {error}", hint="quote it as for a shell") from error
    if not any("{ext}" in word for word in words):
        hint = "such as --host 'hilt rpc --provider script --script {script} --ext {ext}'"
        raise UsageError("--host: there is no {ext} in it", hint=hint)

    @asynccontextmanager
    async def open_host(
        folder: Path, conversation: Conversation, directories: list[Path], tell: Callable[[Told], None]
    ) -> AsyncIterator[Host]:
        spec = _spec(words, folder, conversation, directories)
        async with started(spec) as child, asyncio.TaskGroup() as group:
            ears = _Ears(tell)
            child.channel.listen(ears)
            host = _Command(child.channel, group)
            watch = group.create_task(_watch(child, host))
            yield host
            host.stop()
            await _end(child, ears)
            watch.cancel()

    return open_host


def command_line(words: list[str], directories: list[Path], script: Path) -> list[str]:
    """The words of the command, those about extensions once for each."""
    line: list[str] = []
    for word in words:
        if "{ext}" not in word:
            line.append(word.replace("{script}", str(script)))
            continue
        # A flag before it goes with it: `--ext {ext}`.
        flag = [line.pop()] if line and line[-1].startswith("-") and "=" not in line[-1] and word == "{ext}" else []
        for directory in directories:
            line += [*flag, word.replace("{ext}", str(directory))]
    return line


def _spec(words: list[str], folder: Path, conversation: Conversation, directories: list[Path]) -> Spec:
    project, home, script = folder / "project", folder / "home", folder / "script.jsonl"
    project.mkdir(parents=True)
    home.mkdir(mode=0o700)
    for name, text in conversation.files.items():
        (project / name).write_text(text)
    script.write_bytes(b"".join(map(json_line, conversation.model())))
    argv = command_line(words, directories, script)
    if argv[0] == "hilt":
        # The one that this is, whatever else is on PATH.
        argv[:1] = [sys.executable, "-m", "hilt"]
    env = {name: os.environ[name] for name in _KEPT if name in os.environ}
    env |= {"HOME": str(folder), "HILT_HOME": str(home), "ZOT_HOME": str(home)}
    return Spec(argv=tuple(argv), cwd=project, env=env, grace=_ENDING)


async def _watch(child: Child, host: "_Command") -> None:
    """One that ends before it is told to takes part in nothing any more."""
    exit_ = await child.exited()
    if not host.stopped:
        raise Departure(f"the host {exit_} before the end\n{_tail(child)}".rstrip())


def _tail(child: Child) -> str:
    return "\n".join(f"  {line}" for line in child.last_words()[-_TAIL:])


async def _end(child: Child, ears: "_Ears") -> None:
    try:
        async with asyncio.timeout(_ENDING):
            exit_ = await child.exited()
    except TimeoutError:
        late = f"the host did not end within {_ENDING:g} s of the end of its input"
        raise Departure(f"{late}\n{_tail(child)}".rstrip()) from None
    await child.channel.drain()
    if exit_.code != 0:
        raise Departure(f"the host {exit_}\n{_tail(child)}".rstrip())
    if ears.problem:
        raise Departure(ears.problem)


class _Ears:
    def __init__(self, tell: Callable[[Told], None]) -> None:
        self._tell = tell
        self.problem = ""

    def line(self, line: bytes) -> None:
        try:
            told = msgspec.json.decode(line, type=dict)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self.problem = f"the host wrote a line that is no JSON object: {line[:120]!r}: {error}"
        else:
            self._tell(told)

    def overlong(self, line: TooLong) -> None:
        self.problem = f"the host wrote a line of {line.size:,} bytes"

    def ended(self) -> None:
        """Its exit is awaited."""

    def broken(self) -> None:
        """Its exit is awaited."""

    def stalled(self) -> None:
        """What it does not do is missed by the conversation."""


class _Command:
    def __init__(self, channel: Channel, group: asyncio.TaskGroup) -> None:
        self._channel = channel
        self._group = group
        self.stopped = False

    def send(self, command: Told) -> None:
        self._channel.send(msgspec.json.encode(command))

    def stop(self) -> None:
        if not self.stopped:
            self.stopped = True
            self._group.create_task(self._channel.finish())
