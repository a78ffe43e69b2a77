"""An extension as an interceptor. It keeps its place and its policy while its process is down or not yet up."""

import asyncio
from collections.abc import Generator
from functools import partial
from typing import Any, Protocol

from hilt.errors import ExtensionError, ExtensionGone
from hilt.extensions.capabilities import needed_to_judge
from hilt.extensions.extension import Extension
from hilt.extensions.registrations import Watch
from hilt.extensions.switches import Switches
from hilt.model.contributions import Asked, Interceptor
from hilt.model.verdicts import GuardPolicy, Interceptable, Question, Verdict
from hilt.packages.discovery import Found

_TRUSTED = 3
"""Failures in a row after which it is still asked, but hardly waited for."""
_IMPATIENCE = 0.1


class Post(Protocol):
    """The place an extension has in the host, with or without a process in it."""

    @property
    def current(self) -> Extension | None: ...

    @property
    def coming(self) -> bool:
        """A process is being started."""

    async def news(self) -> None:
        """Wait until something about it has changed."""

    @property
    def reason(self) -> str:
        """Why there is no process."""


class Guards:
    def __init__(self, post: Post, found: Found) -> None:
        self._post = post
        self.unchecked = 0
        """Times it gave no verdict when it was asked for one."""
        self.settle(found)

    def settle(self, found: Found) -> None:
        """A new process: take over what the manifest says of it, and do not hold the last one's failures against it."""
        self._failures = 0
        self._name = found.name
        self._priority = found.manifest.priority
        self._permissions = found.permissions
        declared = found.manifest.guard
        off = Switches(found.choices.off).off("guard", "tool_call")
        self.declared: tuple[Interceptable, ...] = ("tool_call",) if declared and not off else ()
        """What it intercepts even before it has said so."""
        self.policy = (
            GuardPolicy(declared.on_failure, declared.timeout_ms / 1000, declared.required)
            if declared
            else GuardPolicy()
        )

    def interceptors(self, watches: tuple[Watch, ...]) -> tuple[Interceptor, ...]:
        said = {watch.event for watch in watches}
        declared = (Watch(event) for event in self.declared if event not in said)
        return tuple(map(self._interceptor, (*declared, *watches)))

    def _interceptor(self, watch: Watch) -> Interceptor:
        ask = partial(self.ask, name=watch.name)
        priority = self._priority if watch.priority is None else watch.priority
        return Interceptor(watch.event, ask, priority, self._policy_for(watch.event))

    def _policy_for(self, event: Interceptable) -> GuardPolicy:
        """One that may not change what is said must not be able to hold it back either, by not answering."""
        judges = all(map(self._permissions.allows, needed_to_judge(event)))
        return self.policy if judges else GuardPolicy(timeout=self.policy.timeout)

    def ask(self, question: Question, name: str = "") -> Asked:
        if asked := self._ask_now(question, name):
            return asked
        if self._expected():
            return _Later(self, question, name)
        return _Never(self._absent())

    def _ask_now(self, question: Question, name: str) -> Asked | None:
        """Only one that is on duty: before that, some let everything pass."""
        extension = self._post.current
        if extension and (extension.ready or extension.registrations.watching(question.event, name)):
            return extension.intercept(question, name, self._patience, self)
        return None

    def _expected(self) -> bool:
        """Whether it is worth waiting for: it was declared, and a process of it is there or on its way."""
        return bool(self.declared) and (self._post.coming or self._post.current is not None)

    def _absent(self) -> ExtensionGone:
        self.missed()
        post = self._post
        if post.current:
            why = "is not ready: it has not said yet what it guards"
        elif post.coming and not post.reason:
            why = "is not ready: it is being started"
        else:
            why = f"is not running: {post.reason or 'it has just ended'}"
        return ExtensionGone(self._name, f"guard {self._name} {why}")

    @property
    def _patience(self) -> float:
        return self.policy.timeout if self._failures < _TRUSTED else min(_IMPATIENCE, self.policy.timeout)

    def answered(self) -> None:
        self._failures = 0

    def missed(self) -> None:
        self._failures += 1
        self.unchecked += 1

    async def ask_when_ready(self, question: Question, name: str) -> Verdict:
        """A guard that was declared is waited for, within its own time."""
        asked: Asked | None = None
        try:
            async with asyncio.timeout(self._patience):
                while self._expected():
                    if asked := self._ask_now(question, name):
                        break
                    await self._post.news()
        except TimeoutError:
            pass
        if asked is None:
            raise self._absent()
        return await asked


class _Never:
    """No answer will come, and it is known why."""

    settled = True
    asks_user = False
    elapsed = 0.0

    def __init__(self, error: ExtensionError) -> None:
        self._error = error

    def __await__(self) -> Generator[Any, None, Verdict]:
        raise self._error
        yield  # a generator, as awaiting demands

    def discard(self) -> None:
        pass


class _Later:
    """Asked once there is a process to ask."""

    settled = False
    asks_user = False

    def __init__(self, guards: Guards, question: Question, name: str) -> None:
        self._guards = guards
        self._question = question
        self._name = name
        self._begun = asyncio.get_running_loop().time()
        self.elapsed = 0.0

    def __await__(self) -> Generator[Any, None, Verdict]:
        try:
            return (yield from self._guards.ask_when_ready(self._question, self._name).__await__())
        finally:
            self.elapsed = asyncio.get_running_loop().time() - self._begun

    def discard(self) -> None:
        pass
