"""Everything that a process and the host say to each other by method: who takes what. Nothing blocks the reader."""

from msgspec import Raw, UnsetType

from hilt.errors import FrameError
from hilt.extensions.extension import Extension
from hilt.extensions.methods.callbacks import Callbacks
from hilt.extensions.methods.dispatch import Dispatch
from hilt.extensions.methods.notices import ACTIONS, action
from hilt.extensions.methods.registering import Registering
from hilt.extensions.methods.serving import Serving
from hilt.extensions.methods.streaming import Streams
from hilt.extensions.peer import Id
from hilt.extensions.services.ports import Registered
from hilt.wire import jsonrpc_types as wire
from hilt.wire.jsonrpc_reading import read

_LOG_LEVELS = ("debug", "info", "warn", "error")
_SHOWN = 64
_NAMED = 32
"""Unknown methods that are reported by name, once each."""


class Methods:
    def __init__(self, extension: Extension) -> None:
        self._extension = extension
        self.callbacks = Callbacks(extension)
        self.streams = Streams(extension)
        self.dispatch = Dispatch(extension)
        self._registering = Registering(extension, self.callbacks, self.streams)
        self.serving = Serving(extension)
        self._unknown: set[str] = set()

    def request(self, id_: Id, method: str, params: Raw | UnsetType) -> None:
        self.serving.take(id_, method, params)

    def notice(self, method: str, params: Raw | UnsetType) -> None:
        extension = self._extension
        if method == "provider/delta":
            self._report(self.streams.delta(params))
        elif self._registering.knows(method):
            self.register(method, params)
        elif method in ACTIONS:
            try:
                extension.do(action(method, params))
            except FrameError as error:
                self._report(error.message)
        elif method == "log":
            self._log(params)
        elif method == "tool/progress":
            self._progress(params)
        elif method == "$/cancelRequest":
            self.serving.cancel(params)
        else:
            self._note_unknown(method[:_SHOWN])

    def _note_unknown(self, method: str) -> None:
        """It may be as long as a line: no more of it is kept than is shown."""
        if method not in self._unknown and len(self._unknown) < _NAMED:
            self._unknown.add(method)
            services = self._extension.house.services
            if services and services.knows(method):
                self._extension.report(f"{method!r} is ignored: it is a request, and came as a notification")
            else:
                self._extension.report(f"an unknown notification {method!r} is ignored, and others of that name")

    def register(self, method: str, params: Raw | UnsetType) -> None:
        if problem := self._registering.take(method, params):
            self._extension.report(problem)
        self._extension.keeper.changed()

    def registered(self) -> Registered:
        extension, registering = self._extension, self._registering
        named = (watch.name or watch.event for watch in extension.registrations.watches)
        return Registered(
            extension.found.manifest.exec,
            tuple(dict.fromkeys(named)),
            registering.handlers,
            registering.hooks,
        )

    def left(self) -> None:
        self.dispatch.stop()
        self.serving.stop()

    def _log(self, raw: Raw | UnsetType) -> None:
        try:
            params = read(raw, wire.Log)
        except FrameError as error:
            self._report(f"log: {error.message}")
            return
        level = params.level.lower()
        self._extension.program.remark(f"{level if level in _LOG_LEVELS else 'info'}: {params.message}")

    def _progress(self, raw: Raw | UnsetType) -> None:
        try:
            params = read(raw, wire.ToolProgress)
        except FrameError as error:
            self._report(f"tool/progress: {error.message}")
            return
        calls = self._extension.peer.calls if params.call_id else ()
        # In frames a call goes by the id of its frame: the model's is not told there.
        pending = next((one for one in calls if (one.call_id or one.id) == params.call_id), None)
        self._extension.progressed(pending, params.text)

    def _report(self, problem: str | None) -> None:
        if problem:
            self._extension.peer.mistakes += 1
            self._extension.report(problem)
