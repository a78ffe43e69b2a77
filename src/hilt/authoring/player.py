"""Plays the extensions of a golden conversation against a host; every wait has a deadline.

The host is whatever an `Opener` opens: a command that speaks the RPC of `hilt rpc`, or all of hilt in this process.
How it is spoken to and what it must be told is in `spec/transcripts/README.md`.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from hilt.authoring.matching import filled, filled_text, matched, mismatches
from hilt.authoring.puppets import Puppet, json_line, write_puppet
from hilt.authoring.streams import Stream, Told, Wanted
from hilt.authoring.transcripts import Conversation, Step
from hilt.authoring.values import brief
from hilt.errors import Departure

PATIENCE = 20.0
"""Seconds that no wait for a single thing takes; a healthy one takes a fraction of one."""


class Host(Protocol):
    """A host under test, spoken to in the words of `hilt rpc`."""

    def send(self, command: Told) -> None:
        """Have something done, and do not wait for it. The response has the command's id."""

    def stop(self) -> None:
        """Begin to end it."""


Opener: TypeAlias = Callable[
    [Path, Conversation, list[Path], Callable[[Told], None]], AbstractAsyncContextManager[Host]
]
"""Starts a host in a folder, with the extensions of these directories. It tells the last argument every event and
response from the first on. Its end is awaited."""


async def play(
    conversation: Conversation,
    folder: Path,
    open_host: Opener,
    sockets: Path,
    *,
    patience: float = PATIENCE,
    pipes: str = "fd",
) -> list[bytes]:
    """Play it to its end. Every line that the host wrote to an extension. Raises `Departure` when it does otherwise.

    `sockets` is a directory with a short name, for a socket's path must be short; `pipes` are those of the jsonrpc
    dialect.
    """
    try:
        return await _play(conversation, folder, open_host, sockets, patience, pipes)
    except BaseExceptionGroup as group:
        raise _first(group) from None
    except TimeoutError:
        raise Departure(f"it was not over after {2 * patience:g} s") from None


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


async def _play(
    conversation: Conversation, folder: Path, open_host: Opener, sockets: Path, patience: float, pipes: str
) -> list[bytes]:
    puppets = {name: Puppet(name) for name in conversation.extensions}
    player = _Player(conversation, puppets, patience)
    async with asyncio.timeout(2 * max(patience, PATIENCE)), AsyncExitStack() as stack:
        for puppet in puppets.values():
            await stack.enter_async_context(puppet.playing(sockets / puppet.name, player.allow_unasked))
        directories = [
            write_puppet(folder / "extensions", name, sockets / name, conversation.dialect, pipes)
            for name in conversation.extensions
        ]
        async with open_host(folder, conversation, directories, player.heard) as host:
            try:
                await player.play(host)
            finally:
                host.stop()
                for puppet in puppets.values():
                    puppet.leave()
    return [line for puppet in puppets.values() for line in puppet.lines]


class _Player:
    def __init__(self, conversation: Conversation, puppets: dict[str, Puppet], patience: float) -> None:
        self._conversation = conversation
        self._puppets = puppets
        self._patience = patience
        self._events = Stream("the host")
        self._responses: dict[str, asyncio.Future[Told]] = {}
        self._variables: dict[str, Any] = {}
        self._at = 0
        self._asked = ""

    def heard(self, told: Told) -> None:
        """The host has emitted an event, or answered."""
        if told.get("type") != "response":
            self._events.put(told)
        elif (response := self._responses.get(told.get("id", ""))) and not response.done():
            response.set_result(told)

    async def play(self, host: Host) -> None:
        for step in self._conversation.steps:
            await self._take(step, host)
            self._at += 1
            self.allow_unasked()
        host.stop()
        for puppet in self._puppets.values():
            await puppet.heard_all(self._patience)
            puppet.leave()
        self._events.check_rest()
        self._check_health()

    def _check_health(self) -> None:
        """Nothing crashed, and the host has nothing to complain about unless that is what it is about."""
        trouble: list[Told] = [{"type": "ext_status", "state": "restarting"}]
        if "failing" not in self._conversation.needs:
            trouble.append({"type": "ext_status", "state": "failed"})
        if "raw" not in self._conversation.needs:
            trouble.append({"type": "notice", "level": "warn"})
        for event in self._events.came:
            if any(matched(event, pattern, {}) is not None for pattern in trouble):
                raise Departure(f"the host complains: {brief(event, 400)}")

    async def _take(self, step: Step, host: Host) -> None:
        puppet = self._puppets.get(step.of)
        wanted = Wanted(f"line {step.line}", step.kind, step.value)
        match step.kind:
            case "ext" | "ext_raw" if puppet:
                raw = step.kind == "ext_raw"
                variables = self._variables
                said = filled_text(step.value, variables).encode() if raw else json_line(filled(step.value, variables))
                await puppet.say(said, self._patience)
            case "host" if puppet:
                self._variables = await puppet.frames.take(wanted, self._variables, self._patience)
            case "host_not" if puppet:
                puppet.frames.banned.append(wanted)
            case "host_end" if puppet:
                await puppet.heard_all(self._patience)
            case "do":
                self._do(step, host)
            case "expect":
                self._variables = await self._events.take(wanted, self._variables, self._patience)
            case "expect_not":
                self._events.banned.append(wanted)
            case "expect_response":
                await self._response(wanted)
            case _:
                raise AssertionError(f"line {step.line}: nobody plays {step.kind}")

    def _do(self, step: Step, host: Host) -> None:
        if command := _command(filled(step.value, self._variables)):
            command.setdefault("id", str(step.line))  # an answer has the id of its question
            self._asked = command["id"]
            self._responses[self._asked] = asyncio.get_running_loop().create_future()
            host.send(command)
        elif "stop" in step.value:
            host.stop()

    async def _response(self, wanted: Wanted) -> None:
        try:
            async with asyncio.timeout(self._patience):
                response = await asyncio.shield(self._responses[self._asked])
        except TimeoutError:
            raise Departure(f"{wanted} never came") from None
        found = matched(response, wanted.pattern, self._variables)
        if found is None:
            unlike = "; ".join(mismatches(response, wanted.pattern, self._variables))
            raise Departure(f"{wanted} is not in {brief(response, 400)}: {unlike}")
        self._variables = found

    def allow_unasked(self) -> None:
        """Answer the questions that the conversation has no interest in."""
        for puppet in self._puppets.values():
            ahead = [
                step for step in self._conversation.steps[self._at :] if (step.kind, step.of) == ("host", puppet.name)
            ]
            for index, frame in enumerate(puppet.frames.came):
                if index not in puppet.frames.settled and (answer := _harmless(frame)):
                    wanted = index >= puppet.frames.taken and self._wanted(frame, ahead)
                    if not wanted:
                        puppet.frames.settled.add(index)
                        puppet.answer(answer)

    def _wanted(self, frame: Told, ahead: Iterable[Step]) -> bool:
        return any(matched(frame, step.value, self._variables) is not None for step in ahead)


def _harmless(frame: Told) -> Told | None:
    """What an extension says that has no objection, if it is asked for one."""
    match frame:
        case {"type": "event_intercept", "id": id_}:
            return {"type": "event_intercept_response", "id": id_}
        case {"type": "ext_request", "id": id_, "method": method, "params": params} if method in _HARMLESS:
            return {"type": "ext_response", "id": id_, "result": _HARMLESS[method](params)}
        case {"id": id_, "method": method, "params": params} if method in _HARMLESS:
            return {"jsonrpc": "2.0", "id": id_, "result": _HARMLESS[method](params)}
    return None


_HARMLESS: dict[str, Callable[[Told], Told]] = {
    "event/dispatch": lambda _: {"action": None},
    "interceptor/before": lambda _: {"allow": True},
    "interceptor/after": lambda params: {"details": params.get("details")},
    "interceptor/event": lambda _: {},
}


def _command(doing: Told) -> Told | None:
    """What happens, as a client of `hilt rpc` says it."""
    match doing:
        case {"prompt": message}:
            return {"type": "prompt", "message": message}
        case {"command": name}:
            return {"type": "command", "name": name, "args": doing.get("args", "")}
        case {"input": text}:
            return {"type": "input", "text": text}
        case {"shortcut": key}:
            return {"type": "shortcut", "key": key}
        case {"abort": True} | {"compact": True}:
            return {"type": next(iter(doing))}
        case {"host": method}:
            return {"type": "host", "method": method, "params": doing.get("params", {})}
        case {"ui_response": fields} | {"panel_key": fields} | {"panel_close": fields} | {"panel_resize": fields}:
            return {"type": next(iter(doing)), **fields}
    return None
