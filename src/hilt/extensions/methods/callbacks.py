"""Asking an extension for what it registered by name: interceptors, hooks, transformers, a compactor."""

import asyncio
from functools import partial
from typing import Any, TypeVar

from hilt.errors import ExtensionError, ExtensionFailure, ExtensionProtocolError, ExtensionTimeout, FrameError
from hilt.extensions.capabilities import needed_to_amend
from hilt.extensions.extension import Extension
from hilt.extensions.peer import Pending
from hilt.extensions.results import bounded, is_short
from hilt.model.contributions import Finished, ToolOutput, Transformed
from hilt.model.conversation import Message
from hilt.model.verdicts import Block, Question, Verdict
from hilt.wire import jsonrpc_types as wire
from hilt.wire.jsonrpc_messages import read_messages, wrapped
from hilt.wire.jsonrpc_reading import read
from hilt.wire.jsonrpc_results import after_output, after_params
from hilt.wire.jsonrpc_verdicts import before_params, before_verdict, event_params, event_verdict

PATIENCE = 30.0
_INJECTION = 256 * 1024
"""Characters: they stand in the system prompt, beside what the user wants there."""
_Result = TypeVar("_Result")


class Callbacks:
    def __init__(self, extension: Extension) -> None:
        self._extension = extension

    async def ask(self, method: str, params: Any, result: type[_Result], what: str, patience: float) -> _Result:
        """Raises `ExtensionError`. Cancelling it, or giving it up, is told to the extension."""
        extension = self._extension
        extension.before_asking()
        pending = extension.ask_method(method, params, what, patience)
        try:
            answer = await pending.future
        except asyncio.CancelledError:
            extension.waited_in_vain(pending)
            extension.forsake(pending)
            raise
        except ExtensionTimeout:
            extension.tell_method("$/cancelRequest", {"id": pending.id})
            raise
        try:
            return read(extension.outcome(answer), result)
        except FrameError as error:
            raise self._unusable(what, error.message) from None

    # Interceptors

    def question(self, question: Question, name: str, patience: float) -> Pending:
        ask = partial(self._extension.ask_method, patience=patience, purpose="verdict")
        if question.event == "tool_call":
            what = f"tool_call of {question.tool_name}"
            return ask("interceptor/before", before_params(name, question), what)
        return ask("interceptor/event", event_params(name, question), question.event)

    def verdict(self, answer: Any, question: Question, name: str) -> Verdict:
        """An error is a refusal: whoever looks at a call and breaks down over it has not let it pass."""
        try:
            result = self._extension.outcome(answer)
        except ExtensionFailure as error:
            return Block(f"interceptor {name} before: {error.message}")
        try:
            if question.event == "tool_call":
                return before_verdict(result, name, question.tool_args)
            return event_verdict(result, name, question.event)
        except FrameError as error:
            raise self._unusable("what it was asked", error.message) from None

    async def after(self, name: str, finished: Finished) -> ToolOutput:
        params = after_params(name, finished)
        what = f"what {finished.tool_name} returned"
        result = await self.ask("interceptor/after", params, wire.InterceptorAfterResult, what, PATIENCE)
        try:
            output = after_output(result, params, finished)
        except FrameError as error:
            raise self._unusable(what, error.message) from None
        self._extension.capabilities.require(*needed_to_amend(finished.output, output))
        if output == finished.output or is_short(output):
            return output
        return await bounded(output, finished.tool_name, self._extension.house.places.outputs)

    # Hooks and others

    async def on_message(self, message: str) -> str:
        params = wire.OnMessage(message)
        what = "its message hook"
        injection = (await self.ask("messageHook/onMessage", params, wire.OnMessageResult, what, PATIENCE)).injection
        if len(injection) > _INJECTION:
            reason = f"`injection` has {len(injection):,} characters; {_INJECTION:,} is the limit"
            raise self._unusable(what, reason)
        return injection

    async def transform(self, text: str) -> Transformed:
        params = wire.Transform(text)
        what = "its input transformer"
        result = await self.ask("inputTransformer/transform", params, wire.TransformResult, what, PATIENCE)
        return Transformed(result.output, result.handled)

    async def compact(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        params = wire.Compact(wrapped(messages))
        result = await self.ask("compact/execute", params, wire.CompactResult, "its compactor", PATIENCE)
        compacted, problems = read_messages(result.messages, messages)
        if problems:
            raise self._unusable("its compactor", "; ".join(problems[:3]))
        return compacted

    def _unusable(self, what: str, reason: str) -> ExtensionError:
        name = self._extension.name
        return ExtensionProtocolError(name, f"extension {name} gave an unusable answer to {what}: {reason}")
