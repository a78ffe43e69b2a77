"""Models that extensions answer for: what they are called, and who is asked at each call.

An extension that claims an API answers for all its models in place of the built-in adapter. That is looked up when a
model is called and never kept: a process that was restarted is found, one that is gone is not asked.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing

from msgspec import structs

from hilt.errors import HiltError, ProviderError, Unavailable, UsageError
from hilt.model.contributions import ModelSource
from hilt.model.events import Event, Noticed
from hilt.model.models import ModelInfo
from hilt.model.ports import Extensions, Provider
from hilt.model.stream import ModelRequest, StreamItem
from hilt.providers.vendors import LOCAL, PROVIDERS, canonical
from hilt.registry.registry import Registry
from hilt.registry.snapshot import Owned

_COMING = ("starting", "restarting")


def offered(sources: Mapping[str, Owned[ModelSource]]) -> list[ModelInfo]:
    """The models that extensions bring along, as models of a provider that has their API's name."""
    return [
        structs.replace(info, provider=api, api=api, extension=owned.owner)
        for api, owned in sources.items()
        for info in owned.offer.models
    ]


def claimed(info: ModelInfo, sources: Mapping[str, Owned[ModelSource]]) -> ModelInfo:
    """The same, with who answers for it now."""
    owned = sources.get(info.spoken)
    return structs.replace(info, extension=owned.owner if owned else "")


def named(sources: Mapping[str, Owned[ModelSource]], provider: str, model: str) -> ModelInfo | None:
    """The model of an extension that is meant, if one is: listed by it or, where the API is nobody else's, any."""
    own = offered(sources)
    if provider:
        api = next((one for one in sources if one.lower() == canonical(provider)), None)
        if api is None:
            return None
        return _at(api, _without(api, model), [info for info in own if info.provider == api], sources[api].owner)
    listed = [info for info in own if model in (info.id, f"{info.provider}/{info.id}", f"{info.provider}:{info.id}")]
    if len(listed) == 1:
        return listed[0]
    for separator in ("/", ":"):
        before, _, rest = model.partition(separator)
        if rest and before and (found := named(sources, before, rest)):
            return found
    return None


def _at(api: str, model: str, own: list[ModelInfo], owner: str) -> ModelInfo | None:
    if found := next((info for info in own if info.id == model), None):
        return found
    if api in PROVIDERS:
        return None  # the catalogue knows its models
    if model:
        return ModelInfo(model, api, api=api, extension=owner)
    if not own:
        raise UsageError(f"{api} needs a model", hint=f"extension {owner} lists none: name one with --model NAME")
    return own[0]


def _without(api: str, model: str) -> str:
    """`myapi/x` and `myapi:x` are `x`, where `myapi` was named already."""
    head = model[: len(api) + 1]
    return model[len(head) :] if head.lower() in (f"{api}/".lower(), f"{api}:".lower()) else model


class Sourced:
    """A provider that passes every request on to whoever answers for its API at that moment."""

    def __init__(
        self,
        name: str,
        registry: Registry,
        extensions: Callable[[], Extensions],
        emit: Callable[[Event], Awaitable[None]],
        open_: Callable[[], Provider],
        adapter: Provider | None = None,
    ) -> None:
        """`open_` makes the built-in adapter, or says why there is none; `adapter` if it was made already."""
        self.name = name
        self._registry = registry
        self._extensions = extensions
        self._emit = emit
        self._open = open_
        self._adapter = adapter
        self._owners: dict[str, str] = {}
        """Who answered last, by API."""
        self._streams = 0
        self._closed = False

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        api = request.model.spoken
        owned = self._registry.snapshot().sources.get(api)
        if owned is None:
            return self._built_in(request, self._owners.pop(api, request.model.extension))
        is_news = self._owners.get(api) != owned.owner and api in (*PROVIDERS, *LOCAL)
        self._owners[api] = owned.owner
        answer = owned.offer.stream(request)
        return self._announced(answer, owned.owner, request) if is_news else answer

    async def aclose(self) -> None:
        """Streams that are still read go on; the last one closes the adapter."""
        self._closed = True
        await self._close_unused()

    async def _announced(
        self, answer: AsyncGenerator[StreamItem, None], owner: str, request: ModelRequest
    ) -> AsyncGenerator[StreamItem, None]:
        """Whoever chose a model of hilt's own should know that another reads and answers what is said to it."""
        async with aclosing(answer) as items:
            told = f"extension {owner} answers for {request.model.provider}, in place of the built-in adapter"
            await self._emit(Noticed("info", told))
            async for item in items:
                yield item

    async def _built_in(self, request: ModelRequest, gone: str) -> AsyncGenerator[StreamItem, None]:
        adapter = self._opened(request.model, gone)
        self._streams += 1
        try:
            if gone:
                told = f"extension {gone} no longer answers for {request.model.provider}: the built-in adapter does"
                await self._emit(Noticed("warn", told))
            async with aclosing(adapter.stream(request)) as items:
                async for item in items:
                    yield item
        finally:
            self._streams -= 1
            if self._closed:
                await self._close_unused()

    async def _close_unused(self) -> None:
        if self._adapter and not self._streams:
            adapter, self._adapter = self._adapter, None
            await adapter.aclose()

    def _opened(self, model: ModelInfo, gone: str) -> Provider:
        if self._adapter is None:
            try:
                self._adapter = self._open()
            except HiltError as error:
                if gone:
                    self._owners[model.spoken] = gone  # it is still the one to wait for
                    raise self._bereft(model, gone, error) from error
                if isinstance(error, ProviderError):
                    raise
                raise ProviderError(error.message, hint=error.hint) from error
        return self._adapter

    def _bereft(self, model: ModelInfo, gone: str, error: HiltError) -> ProviderError:
        """Nobody else can answer. One that is being restarted is worth another try."""
        state = next((one.state for one in self._extensions().statuses() if one.name == gone), "stopped")
        message = f"extension {gone}, which answers for {model.provider}/{model.id}, does not do so now: it is {state}"
        if state in _COMING:
            return Unavailable(message)
        hint = f"`/reload-ext {gone}` starts it anew, `/model` chooses another"
        if isinstance(error, ProviderError):  # a key would do as well
            hint = f"{hint}; {error.hint}"
        return ProviderError(message, hint=hint)
