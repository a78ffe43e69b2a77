"""Which model answers: at the start by flags and files, later by name; and whether an extension answers for it.

At the start no extension is up yet. So where one might be meant, or might do without a key that is missing, nothing is
decided: the first request asks again, when they have had time to say what they offer.
"""

from collections.abc import Callable, Container, Mapping
from pathlib import Path

from msgspec import Struct

from hilt.agent.bus import Bus
from hilt.agent.parts import ActiveModel
from hilt.cli.ground import Ground
from hilt.errors import AuthError, HiltError, UsageError
from hilt.model.contributions import ModelSource
from hilt.model.models import ModelInfo
from hilt.model.ports import Extensions, Provider
from hilt.providers.choose import Choice, choose, priceless
from hilt.providers.sourced import Sourced, claimed, named, offered
from hilt.providers.vendors import LOCAL, PROVIDERS, canonical
from hilt.registry.registry import Registry
from hilt.registry.snapshot import Owned
from hilt.sessions.log import SessionLog


class _Wish(Struct, frozen=True):
    """What the flags and the files say."""

    provider: str
    model: str
    configured_provider: str = ""
    configured_model: str = ""
    flags: bool = True
    """Whether the key and the address on the command line are for this one."""

    @property
    def named(self) -> str:
        """The provider it names, wherever that is said."""
        return canonical(self.provider or self.configured_provider)


class _Everything:
    def __contains__(self, _: object) -> bool:
        return True


class Chooser:
    def __init__(
        self,
        ground: Ground,
        registry: Registry,
        bus: Bus,
        extensions: Callable[[], Extensions],
        *,
        extensible: bool,
        keyless: bool = False,
    ) -> None:
        """`extensible`: extensions may come, so what is not known now may be known later. `keyless`: it is enough to
        have a key when the model is first asked."""
        self._ground = ground
        self._registry = registry
        self._bus = bus
        self._extensions = extensions
        self._extensible = extensible
        self._keyless = keyless
        self._first = ""
        """The provider that the flags' key and address are for."""

    def start(self, log: SessionLog | None) -> ActiveModel:
        """A resumed session goes on with its model, unless a flag says otherwise or it cannot be had."""
        options, config = self._ground.options, self._ground.config
        provider, model = log.model if log else ("", "")
        if provider in ("", *LOCAL):
            provider, model = config.provider, config.model
        wish = _Wish(options.provider, options.model, provider, model)
        if self._extensible and not options.script:
            return self._begin(wish)
        try:
            return self._first_of(wish)
        except AuthError as error:
            if not self._keyless:
                raise
            return self._pending(wish, error)

    def switch(self, model: str, current: ActiveModel) -> ActiveModel:
        """The model of this name, from the provider in use if it has it, else from the one that does."""
        here = current.info.provider
        serving = self._serving(model)
        prefix = canonical(model.replace(":", "/").partition("/")[0])
        if not serving and (own := self._own(here, prefix, model)):
            return self._answered(own)
        anything_goes = here == "ollama" or (bool(self._ground.options.base_url) and here not in LOCAL)
        stay = model == current.info.id or here in serving or here == prefix
        stay = stay or (anything_goes and not serving and prefix not in PROVIDERS)
        if stay and here in LOCAL:
            return ActiveModel(current.provider, self._ground.catalogue.find(here, model))
        if not stay and not serving and prefix not in PROVIDERS:
            raise UsageError(f'unknown model "{model}" (provider="{here}")', hint="`hilt models` lists the known ones")
        # Another vendor must not be shown the key or the address that were given for this one.
        wish = _Wish(here if stay else "", model, flags=stay and here == self._first)
        active = self._active(self._choose(wish, self._sources))
        for secret in self._ground.credentials.all_secrets():
            self._ground.mask.add(secret)  # one may have been stored since the start
        return active

    def models(self) -> list[ModelInfo]:
        """All that can be chosen, each with who answers for it."""
        known = {(info.provider, info.id): claimed(info, self._sources) for info in self._ground.catalogue.all()}
        for info in offered(self._sources):
            if info.provider not in PROVIDERS or (info.provider, info.id) not in known:
                known[info.provider, info.id] = self._ground.catalogue.amended(info)
        return [*known.values()]

    def key(self, provider: str) -> str:
        """As hilt itself would use it: of the flag, the environment, or the file of keys; empty when there is none."""
        flag = self._ground.options.api_key if canonical(provider) == self._first else ""
        return self._ground.credentials.key(provider, flag)

    @property
    def _sources(self) -> Mapping[str, Owned[ModelSource]]:
        return self._registry.snapshot().sources

    # At the start

    def _begin(self, wish: _Wish) -> ActiveModel:
        """As far as it can be said now."""
        stranger = bool(wish.named) and wish.named not in PROVIDERS
        try:
            active = self._first_of(wish)
        except HiltError as error:
            if not stranger and not isinstance(error, AuthError):
                raise
            return self._pending(wish, error)
        if stranger or self._may_be_anothers(wish) or self._hoped(wish).info != active.info:
            return ActiveModel(active.provider, active.info, pending=lambda: self._again(wish))
        return active

    def _first_of(self, wish: _Wish) -> ActiveModel:
        active = self._active(self._choose(wish, ()))
        self._first = active.info.provider
        return active

    def _may_be_anothers(self, wish: _Wish) -> bool:
        """Whether a model is named that nobody here knows."""
        prefix = canonical(wish.model.replace(":", "/").partition("/")[0])
        known = wish.provider or prefix in PROVIDERS or self._serving(wish.model)
        return bool(wish.model) and not known

    def _hoped(self, wish: _Wish) -> Choice:
        """Who it would be if no key were needed."""
        return self._choose(wish, _Everything())

    def _pending(self, wish: _Wish, error: HiltError) -> ActiveModel:
        if isinstance(error, AuthError):
            info = self._hoped(wish).info
        else:
            info = ModelInfo(wish.model or wish.configured_model or "default", wish.named)
        self._first = info.provider
        return ActiveModel(self._sourced(info, _refusing(error)), info, pending=lambda: self._again(wish))

    def _again(self, wish: _Wish) -> ActiveModel:
        """Now that extensions had time to start. Raises what the start would have raised without them."""
        active = self._answered(own) if (own := self._wished(wish)) else self._active(self._choose(wish, self._sources))
        self._first = active.info.provider
        return active

    def _wished(self, wish: _Wish) -> ModelInfo | None:
        """The model of an extension that is meant."""
        if wish.provider:
            return named(self._sources, wish.provider, wish.model)
        if self._serving(wish.model):
            return None
        own = named(self._sources, "", wish.model)
        if own is None and wish.configured_provider:
            own = named(self._sources, wish.configured_provider, wish.model or wish.configured_model)
        return own

    # Both

    def _own(self, here: str, prefix: str, model: str) -> ModelInfo | None:
        """The model of an extension that is meant; one of the extension in use need not be listed."""
        found = named(self._sources, "", model)
        if found is None and here not in PROVIDERS and prefix not in PROVIDERS:
            found = named(self._sources, here, model)
        return found

    def _serving(self, model: str) -> list[str]:
        """The providers that hilt itself can ask for a model of this id."""
        return [name for name in self._ground.catalogue.providers_of(model) if name in PROVIDERS]

    def _answered(self, own: ModelInfo) -> ActiveModel:
        info = self._ground.catalogue.amended(own)
        unknown = UsageError(f"no extension answers for {info.provider} at present")
        return ActiveModel(self._sourced(info, _refusing(unknown)), info, priceless(info))

    def _active(self, choice: Choice) -> ActiveModel:
        answered = choice.info.spoken in self._sources
        adapter = None if answered else choice.open()  # what is wrong with it is said at once
        return ActiveModel(self._sourced(choice.info, choice.open, adapter), choice.info, choice.notice)

    def _sourced(self, info: ModelInfo, open_: Callable[[], Provider], adapter: Provider | None = None) -> Sourced:
        return Sourced(info.provider, self._registry, self._extensions, self._bus.emit, open_, adapter)

    def _choose(self, wish: _Wish, sources: Container[str]) -> Choice:
        options, config = self._ground.options, self._ground.config
        configured_provider = wish.configured_provider or wish.provider
        if canonical(configured_provider) not in PROVIDERS and configured_provider in sources:
            configured_provider = ""  # an extension's: for its own models only
        # An address belongs to the provider it was configured for: another's key must not be sent there.
        own = canonical(configured_provider) == canonical(config.provider)
        return choose(
            provider=wish.provider,
            model=wish.model,
            api_key=options.api_key if wish.flags else "",
            base_url=options.base_url if wish.flags else "",
            script=Path(options.script) if options.script and wish.flags else None,
            credentials=self._ground.credentials,
            catalogue=self._ground.catalogue,
            configured_provider=configured_provider,
            configured_model=wish.configured_model,
            configured_base_url=config.base_url if own else "",
            claimed=sources,
        )


def _refusing(error: HiltError) -> Callable[[], Provider]:
    def refuse() -> Provider:
        raise error

    return refuse
