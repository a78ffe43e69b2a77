"""Running a face: the event loop around it, signals, the prompt from stdin, the exit code."""

import argparse
import gc
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NoReturn

from hilt import __version__
from hilt.cli.flags import parse, shared_parser
from hilt.cli.main import VERBS
from hilt.errors import UsageError

_FACES = "`hilt -p PROMPT` answers once, `hilt --json PROMPT` prints events, `hilt rpc` serves a program"
_WIND_DOWN = 1.0
"""Seconds that what was stopped may take to record and tell how it ended."""


def run(argv: list[str]) -> int:
    options = parse(argv)
    if options.help:
        sys.stdout.write(shared_parser().format_help())
        return 0
    if options.version:
        sys.stdout.write(f"hilt {__version__}\n")
        return 0
    if options.list_models:
        from hilt.cli import models

        return models.run(["models", *(["--json"] if options.json else [])])
    options.ext = [str(Path(path).expanduser().absolute()) for path in options.ext]  # before the directory changes
    if trace := options.trace or os.environ.get("HILT_TRACE", ""):
        options.trace = str(Path(trace).expanduser().absolute())
    _enter(options.cwd)
    if options.print_ or options.json:
        return _one_shot(options)
    if options.rpc or options.prompt[:1] == ["rpc"]:
        return _rpc(options)
    if options.prompt[:1] and options.prompt[0] in VERBS:
        raise UsageError(f"the verb comes first: hilt {options.prompt[0]} …", hint="then its own flags")
    if options.prompt and options.prompt[0].startswith("-") and "--" not in argv:
        raise UsageError(f"there is no flag {options.prompt[0]!r}", hint="behind `--` it is taken for words")
    if len(options.prompt) == 1 and not any(letter.isspace() for letter in options.prompt[0]):
        raise UsageError(f'there is no verb "{options.prompt[0]}"', hint=_FACES)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("the terminal interface needs a terminal", hint=_FACES)
    return _tui(options)


def _enter(cwd: str) -> None:
    if not cwd:
        from hilt.home import working_directory

        working_directory()
        return
    try:
        os.chdir(Path(cwd).expanduser())
    except OSError as error:
        raise UsageError(f"--cwd {cwd}: {error.strerror}", hint="name a directory that exists") from error


def _prompt(words: list[str]) -> str:
    text = " ".join(words)
    if not text and not sys.stdin.isatty():
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
    # Arguments that are not UTF-8 arrive as lone surrogates, which no JSON can carry.
    text = text.encode("utf-8", "replace").decode()
    if not text.strip():
        raise UsageError("there is no prompt", hint='give one as an argument, as in `hilt -p "…"`, or pipe one in')
    return text


def _one_shot(options: argparse.Namespace) -> int:
    prompt = _prompt(options.prompt)
    if options.resume:
        from hilt.cli.opening import pick
        from hilt.home import Home
        from hilt.sessions.store import SessionStore

        options.session = str(pick(SessionStore(Home.find().sessions), Path.cwd()))

    async def face(interrupts: "Interrupts") -> int:
        from hilt.cli.wiring import assemble

        if options.json:
            from hilt.frontends.jsonl import run as show
        else:
            from hilt.frontends.plain import run as show
        async with assemble(options, can_ask=False) as app:
            _started()
            interrupts.first = app.session.abort
            outcome = await show(app.session, prompt, app.mask)
        return {"error": 1, "aborted": interrupts.code}.get(outcome.stop, 0)

    return _run(face)


def _rpc(options: argparse.Namespace) -> int:
    if options.prompt[1:]:
        raise UsageError(
            f"rpc takes no prompt, but got: {' '.join(options.prompt[1:])}",
            hint="send it as a `prompt` line on stdin",
        )
    if options.resume:
        raise UsageError("-r asks which session to open, and rpc has nobody to ask", hint="name one with --session ID")
    # A secret of ours: the commands that the agent runs must not inherit it.
    tokens = [os.environ.pop(name, "") for name in ("HILT_RPC_TOKEN", "ZOTCORE_RPC_TOKEN")]

    async def face(_: "Interrupts") -> int:
        from functools import partial

        from hilt.cli.serving import Client
        from hilt.cli.wiring import assemble
        from hilt.frontends.rpc import RpcServer
        from hilt.frontends.rpc_commands import RpcParts
        from hilt.transport.stdio import LineWriter

        async with assemble(options, can_ask=True) as app:
            _started()
            token = tokens[0] or tokens[1]
            app.mask.add(token)
            serve = partial(Client, app.services) if app.services else None
            parts = RpcParts(app.session, app.questions, app.models, app.store, app.mask, token, serve)
            trouble = await RpcServer(parts, LineWriter(1)).serve()
        if trouble:
            from hilt.frontends.terminal import clean

            sys.stderr.write(clean(f"hilt: rpc: {trouble}\n"))
        return 1 if trouble else 0

    return _run(face)


def _tui(options: argparse.Namespace) -> int:
    async def face(interrupts: "Interrupts") -> int:
        from hilt.cli.terminal import show

        return await show(options, interrupts, _started)

    return _run(face)


class Interrupts:
    """Ctrl-C, SIGTERM and SIGHUP: the first stops what runs, the second the face, the third everything at once."""

    def __init__(self) -> None:
        self.first: Callable[[], bool] = lambda: False
        """Stops what runs in an orderly way; False when nothing does."""
        self.last: Callable[[], None] = lambda: None
        """What must be done even when nothing else is any more."""
        self.cancel: Callable[[], object] = lambda: None
        self.later: Callable[[float, Callable[[], object]], object] = lambda _, __: None
        self._seen: list[int] = []

    @property
    def code(self) -> int:
        return 128 + self._seen[0] if self._seen else 130

    @property
    def happened(self) -> bool:
        return bool(self._seen)

    def __call__(self, number: int) -> None:
        self._seen.append(number)
        if len(self._seen) > 2:
            self.last()
            _leave(self.code)
        if len(self._seen) == 1 and self.first():
            self.later(_WIND_DOWN, self.cancel)  # whoever reads our output may have stopped reading
        else:
            self.cancel()


def _run(face: Callable[[Interrupts], Awaitable[int]]) -> NoReturn:
    """Run it, then leave without waiting for threads that may be stuck in a read."""
    gc.disable()  # while modules are still being imported there is no garbage, and looking for it takes 7 ms
    import asyncio  # 58 ms: --help does without it
    import signal

    from hilt.cli.explain import explain

    interrupts = Interrupts()

    async def interruptible() -> int:
        task = asyncio.current_task()
        assert task is not None
        interrupts.cancel = task.cancel
        interrupts.later = asyncio.get_running_loop().call_later
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, interrupts, number)
        try:
            return await face(interrupts)
        except asyncio.CancelledError:
            if not interrupts.happened:
                raise
            return interrupts.code

    with asyncio.Runner() as runner:
        try:
            code = runner.run(interruptible())
        except Exception as error:  # noqa: BLE001 - the outermost place: `explain` logs what it does not know
            code = explain(error)
            if interrupts.happened:
                code = interrupts.code  # it failed because it was stopped, as a command does
        _leave(code)


def _started() -> None:
    """Everything is imported and built, and stays for good: collect garbage from now on, and only what comes later."""
    gc.freeze()
    gc.enable()


def _leave(code: int) -> NoReturn:
    """Skip the interpreter's own teardown: it takes 10 ms and waits for threads that may be stuck in a read."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            pass
    os._exit(code)
