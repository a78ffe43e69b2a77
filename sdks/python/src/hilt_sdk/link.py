"""The wire to a host while it lasts: what both dialects do alike.

Owns running the author's handlers and seeing to it that each question is answered once, the requests that are open
on either side, and what is done when the host does not offer something. How all that is spelt is for `frames` and
`jsonrpc`, which extend it.
"""

from __future__ import annotations

from _thread import allocate_lock, start_new_thread
from time import perf_counter

from hilt_sdk.lanes import Lane, Waiting
from hilt_sdk.protocol import FEATURES, HostInfo, lacking
from hilt_sdk.runner import Job, Pace, Runner
from hilt_sdk.transport import decoded, encoded, log
from hilt_sdk.values import HostError, NotConnected, NotOffered, failure, result_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from hilt_sdk.calls import Call
    from hilt_sdk.extension import Extension
    from hilt_sdk.panels import Panel
    from hilt_sdk.provider import Reply
    from hilt_sdk.registrations import Tool
    from hilt_sdk.transport import Pipes
    from hilt_sdk.values import Result

    Answer = Callable[[Any], None]
    Failed = Callable[[BaseException], None]

_GONE = "the host has gone"


class Link:
    dialect = ""

    def __init__(self, ext: Extension, pipes: Pipes) -> None:
        self.ext = ext
        self.pipes = pipes
        self.registered = ext._registered
        self.runner = Runner(pipes.read, self._line, self._ended)
        self.on_end: Callable[[], object] | None = None
        """Called once when the host has ended it, or has gone."""
        self.host: HostInfo | None = None
        """None until the host has said who it is."""
        self.exit_code = 0
        self.complaint = ""
        """What is missing, in one sentence for the user."""
        self.calls: dict[Any, Call] = {}
        """Tool calls under way whose handlers want to know of them, by what the host calls them."""
        self.panels: dict[str, Panel] = {}
        self.topics: dict[int, Callable[[Any], object]] = {}
        self.cancellable: dict[Any, Reply] = {}
        """Answers of models that are under way, by the question."""
        self.step = 0
        """Of the prompt, counted by the events of the jsonrpc dialect."""
        self._questions: dict[Any, Waiting] = {}
        self._count = 0
        self._counting = allocate_lock()
        self._lanes: dict[str, Lane] = {}
        self._said: set[str] = set()

    # The life of a connection

    def open(self) -> None:
        """Say what there is to say before the host has spoken."""
        raise NotImplementedError

    def run(self) -> None:
        """Until the host ends it, or its end of the pipe is closed."""
        self.open()
        self.runner.run()

    def close(self) -> None:
        """Nothing more is read, and nobody waits for anything any more."""
        self.runner.end()

    def _ended(self) -> None:
        for call in list(self.calls.values()):
            start_new_thread(call.cancel, ())  # which calls functions of the author's
        for key in list(self._questions):
            waiting = self._questions.pop(key, None)
            if waiting is not None:
                waiting.answer(None, NotConnected(_GONE))
        if self.on_end is not None:
            self.on_end()

    def finish(self, patience: float) -> bool:
        """Call what the author wants to be done at the end, and let handlers end. False: they did not in time."""
        deadline = perf_counter() + patience
        handlers = list(self.registered.on_stop)
        if handlers:
            waiting = Waiting()

            def work() -> None:
                for handler in handlers:
                    self.attempt(handler.function)
                waiting.answer(None)

            start_new_thread(work, ())
            if not waiting.lock.acquire(timeout=patience):
                return False
        return self.runner.settle(max(deadline - perf_counter(), 0.0))

    def _line(self, line: bytes) -> Job | None:
        try:
            message = decoded(line)
        except ValueError:
            if line.strip():
                self.say_once("a line of the host is no JSON, and was left out")
            return None
        if not isinstance(message, dict):
            return None
        try:
            return self.receive(message)
        except Exception as error:  # noqa: BLE001  # one line that cannot be dealt with costs itself only
            log_trouble(error)
            return None

    def receive(self, message: dict[str, Any]) -> Job | None:
        """One message of the host: what is to be run for it, if anything. Runs nothing of the author's itself."""
        raise NotImplementedError

    def send(self, message: dict[str, Any]) -> None:
        """Raises `Unwritable`, `LineTooLong`."""
        self.pipes.write(encoded(message))

    # What the host offers

    def meet(self, host: HostInfo) -> None:
        """The host has said who it is: find out what is missing, and whether the extension can do without."""
        self.host = host
        required = lacking(host, ((feature, "") for feature in self.registered.required))
        self.ext.missing = lacking(host, self.registered.wanted())
        if required:
            self.exit_code = 1
            self.complaint = f"{self.ext.name}: {host} does not offer what it needs: {', '.join(required)}"
        elif self.ext.missing:
            self.complaint = f"{self.ext.name}: {host} does not offer: {', '.join(self.ext.missing)}"

    def tell_missing(self) -> None:
        if self.complaint:
            for words in self.ext.missing:
                log(f"{self.ext.name}: {self.host} does not offer {words}")
            self.notify(self.complaint, "error" if self.exit_code else "warn")

    def unregistered(self, kind: str, error: ValueError) -> None:
        """Something that no line can carry: it costs itself only, and is said."""
        text = f"{self.ext.name}: a {kind.replace('_', ' ')} cannot be registered: {error}"
        log(text)
        self.notify(text, "error")

    def offers(self, feature: str) -> bool:
        return self.host is not None and self.host.offers(feature)

    def need(self, feature: str) -> None:
        """Raises `NotOffered`."""
        if self.host is None:
            raise NotConnected("the host has not answered yet: wait for on_ready")
        if not self.host.offers(feature):
            raise NotOffered(f"{self.host} does not offer {FEATURES[feature][0]}")

    def can(self, feature: str) -> bool:
        """Whether it is offered; that it is not is in the log, once."""
        if self.host is not None and self.host.offers(feature):
            return True
        self.say_once(f"{self.host or 'the host'} does not offer {FEATURES[feature][0]}: left out")
        return False

    def say_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            log(f"{self.ext.name}: {text}")

    def started(self) -> Job | None:
        """The handshake is over: what the author wants to be done then."""
        handlers = list(self.registered.on_ready)
        if not handlers:
            return None

        def work() -> None:
            for handler in handlers:
                self.attempt(handler.function)

        pace = Pace()
        pace.slow = True
        return Job(work, pace)

    # Running handlers

    def invoke(self, function: Callable[..., Any], args: tuple[Any, ...], answer: Answer, failed: Failed) -> None:
        """Call the author's function and answer with what it returns. Never raises."""
        try:
            value = function(*args)
        except BaseException as error:  # noqa: BLE001  # whatever it is, the host gets its answer
            self._failed(failed, error)
            return
        self._settle(value, answer, failed)

    def _settle(self, value: Any, answer: Answer, failed: Failed) -> None:
        if hasattr(value, "__await__"):
            self.runner.start_coroutine(self._awaited(value, answer, failed))
            return
        try:
            answer(value)
        except Exception as error:  # noqa: BLE001  # what it returned cannot be used
            self._failed(failed, error)

    async def _awaited(self, coroutine: Coroutine[Any, Any, Any], answer: Answer, failed: Failed) -> None:
        try:
            value = await coroutine
        except BaseException as error:  # noqa: BLE001  # whatever it is, the host gets its answer
            self._failed(failed, error)
            return
        try:
            answer(value)
        except Exception as error:  # noqa: BLE001  # what it returned cannot be used
            self._failed(failed, error)

    def value_of(self, function: Callable[..., Any], *args: Any) -> Any:
        """What the author's function returns, also when that is a coroutine. Raises what it raises."""
        value = function(*args)
        if not hasattr(value, "__await__"):
            return value
        waiting = Waiting()

        async def wait() -> None:
            try:
                waiting.answer(await value)
            except BaseException as error:  # noqa: BLE001  # raised again where it is waited for
                waiting.answer(None, error)

        self.runner.step_aside()
        self.runner.start_coroutine(wait())
        waiting.lock.acquire()
        if waiting.error is not None:
            raise waiting.error
        return waiting.value

    def attempt(self, function: Callable[..., Any], *args: Any) -> None:
        """Call a function of the author's that nobody waits for."""
        try:
            self.value_of(function, *args)
        except BaseException as error:  # noqa: BLE001  # it is in the log, and the next one has its turn
            log_trouble(error)

    def _failed(self, failed: Failed, error: BaseException) -> None:
        log_trouble(error)
        failed(error)

    def lane(self, name: str, work: Callable[[], None]) -> Job | None:
        """To be done after all that came before it in the lane."""
        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = Lane()
        return lane.add(work)

    def is_busy(self, name: str) -> bool:
        """Whether something is done in the lane, or waits to be."""
        lane = self._lanes.get(name)
        return lane is not None and lane.busy

    # Tools

    def tool_job(self, key: Any, call_id: str, tool: Tool, args: Any) -> Job:
        call = None
        if tool.call_parameter:
            from hilt_sdk.calls import Call

            call = self.calls[key] = Call(self, call_id, tool.name)  # before the next line, which may cancel it

        def work() -> None:
            self._run_tool(key, call, tool, args)

        return Job(work, tool)

    def _run_tool(self, key: Any, call: Call | None, tool: Tool, args: Any) -> None:
        try:
            values = tool.signature.bind(args)
            if call is not None:
                values[tool.call_parameter] = call
            value = tool.function(**values)
            if hasattr(value, "__await__"):
                self.runner.start_coroutine(self._awaited(value, *self._tool_answers(key)))
                return
            self.send_result(key, result_of(value))
        except BaseException as error:  # noqa: BLE001  # whatever it is, the model gets its answer
            self._tool_failed(key, error)
        if call is not None:
            self.calls.pop(key, None)

    def _tool_answers(self, key: Any) -> tuple[Answer, Failed]:
        def answer(value: Any) -> None:
            self.send_result(key, result_of(value))
            self.calls.pop(key, None)

        def failed(error: BaseException) -> None:
            self._send_failure(key, error)
            self.calls.pop(key, None)

        return answer, failed

    def _tool_failed(self, key: Any, error: BaseException) -> None:
        log_trouble(error)
        self._send_failure(key, error)

    def _send_failure(self, key: Any, error: BaseException) -> None:
        self.send_result(key, failure(error))

    def send_result(self, key: Any, result: Result) -> None:
        raise NotImplementedError

    # Questions to the host

    def ask(
        self,
        send: Callable[[int], None],
        cancel: Callable[[int], None],
        timeout: float | None,
        hear: Callable[[Any], object] | None = None,
    ) -> Any:
        """Send a question by its number and wait for the answer. Raises `HostError`, `TimeoutError`, `NotConnected`."""
        if self.pipes.closed or self.runner.over:
            raise NotConnected(_GONE)
        waiting = Waiting(hear)
        with self._counting:
            self._count += 1
            number = self._count
        self._questions[number] = waiting
        try:
            send(number)
        except Exception:
            del self._questions[number]
            raise
        self.runner.step_aside()
        if not waiting.lock.acquire(timeout=-1 if timeout is None else max(timeout, 0.0)):
            if self._questions.pop(number, None) is not None:
                cancel(number)
                raise TimeoutError(f"the host did not answer within {timeout:g} s")
            waiting.lock.acquire()
        if waiting.error is not None:
            raise waiting.error
        return waiting.value

    def answered(self, number: Any, value: Any, error: Any = None) -> None:
        """The host's answer to one of these; what nobody waits for is dropped."""
        waiting = self._questions.pop(number, None)
        if waiting is None:
            return
        if error is None:
            if waiting.hear is not None:
                waiting.hear(value)
            waiting.answer(value)
            return
        told = error if isinstance(error, dict) else {"message": str(error)}
        waiting.answer(None, HostError(_code(told.get("code")), str(told.get("message") or "the host gave no reason")))

    def request(
        self,
        method: str,
        params: dict[str, Any],
        timeout: float | None,
        hear: Callable[[Any], object] | None = None,
    ) -> Any:
        """A host service. Raises as `ask` does, and `NotOffered`."""
        raise NotImplementedError

    def tell(self, method: str, params: dict[str, Any]) -> None:
        """A notification by method."""
        raise NotImplementedError

    def call_tool(self, name: str, args: dict[str, Any], parent: str, timeout: float | None) -> Result:
        raise NotImplementedError

    # What the dialects say each in their own way

    def register(self, kind: str, entry: Any) -> None:
        """Tell the host of something that was registered after the handshake."""
        raise NotImplementedError

    def notify(self, text: str, level: str) -> None:
        raise NotImplementedError

    def clear_notes(self) -> None:
        raise NotImplementedError

    def show(self, text: str) -> None:
        raise NotImplementedError

    def submit(self, text: str) -> None:
        raise NotImplementedError

    def progress(self, call_id: str, text: str) -> None:
        raise NotImplementedError

    def open_panel(self, panel: Panel) -> None:
        raise NotImplementedError

    def render_panel(self, panel: Panel, content: dict[str, Any]) -> None:
        raise NotImplementedError

    def close_panel(self, panel: Panel) -> None:
        raise NotImplementedError

    # Panels

    def panel_job(self, panel_id: Any, work: Callable[[Panel], None]) -> Job | None:
        """What happens to an open panel, one thing after the other."""
        panel = self.panels.get(panel_id)
        if panel is None:
            return None
        return self.lane(f"panel {panel_id}", lambda: self.attempt(work, panel))

    def show_panel(self, panel: Panel) -> None:
        """Where a panel cannot be opened, what it would show is a message."""
        self.show(panel.in_words())

    def panel_closed(self, panel_id: Any) -> Job | None:
        job = self.panel_job(panel_id, lambda panel: panel.closed())
        self.forget_panel(panel_id)
        return job

    def forget_panel(self, panel_id: Any) -> None:
        self.panels.pop(panel_id, None)
        self._lanes.pop(f"panel {panel_id}", None)

    # Events

    def event_job(self, name: str, data: dict[str, Any]) -> Job | None:
        listeners = self.registered.events.get(name)
        if not listeners:
            return None
        from hilt_sdk.values import Event

        event = Event(name, data)

        def work() -> None:
            for listener in listeners:
                self.attempt(listener.function, event)

        return self.lane("events", work)


def log_trouble(error: BaseException) -> None:
    """The traceback of what an author's function raised, without the SDK's own part of it."""
    from hilt_sdk.values import ToolError

    if isinstance(error, ToolError):
        return
    import traceback

    log("".join(traceback.format_exception(type(error), error, _own(error))).rstrip())


def _code(told: Any) -> int:
    return told if isinstance(told, int) else 0


def _own(error: BaseException) -> Any:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None and trace.tb_frame.f_globals.get("__name__") == __name__:
        trace = trace.tb_next
    return trace
