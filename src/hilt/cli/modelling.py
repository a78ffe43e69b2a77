"""Models as extensions and clients see them: listed, switched, described anew, and the keys for them.

Joins what the session uses to the catalogue, the credentials and the files that keep the user's choices.
"""

import asyncio
from collections.abc import Mapping

from msgspec import structs

from hilt.agent.session import Session
from hilt.cli.chooser import Chooser
from hilt.cli.configuring import prefer
from hilt.cli.ground import Ground
from hilt.errors import ConfigError, UsageError
from hilt.model.events import Noticed
from hilt.model.models import ModelInfo
from hilt.model.services import ModelListing, ModelOverride
from hilt.providers.usermodels import write_user_models
from hilt.providers.vendors import canonical


class Modelling:
    """The port `Models` of the services."""

    def __init__(self, session: Session, chooser: Chooser, ground: Ground) -> None:
        self._session = session
        self._chooser = chooser
        self._ground = ground

    def list(self) -> tuple[ModelListing, ...]:
        here = self._session.active.info
        known = self._chooser.models()
        if all((info.provider, info.id) != (here.provider, here.id) for info in known):
            known.append(here)  # one that nobody lists is in use all the same
        current = (here.provider, here.id)
        return tuple(_listing(info, current) for info in sorted(known, key=lambda info: (info.provider, info.id)))

    async def switch(self, model: str, source: str, *, keep: bool) -> None:
        """At once between turns; otherwise when the turn has ended, and then what fails is told."""
        if not model.strip():
            raise UsageError("modelId is required")
        await self._try(model)  # one that is not to be had is told at once

        async def change() -> None:
            found = await self._session.find_model(model)
            await self._session.switch(found)
            await self._session.announce()
            await self._session.bus.emit(Noticed("info", f"{source} switched to {found.info.provider}/{found.info.id}"))
            if keep:
                await asyncio.to_thread(self._keep, found.info)

        await self._session.between_turns(f"/model {model}", change)

    async def _try(self, model: str) -> None:
        found = await self._session.find_model(model)
        if found.provider is not self._session.active.provider:
            await found.provider.aclose()

    async def sync(self) -> int:
        await asyncio.to_thread(self._ground.catalogue.reload)
        self._refresh()
        return len(self._chooser.models())

    async def write(self, overrides: Mapping[str, ModelOverride]) -> int:
        count = await asyncio.to_thread(write_user_models, self._ground.home.models, overrides)
        await self.sync()
        return count

    def provider(self, name: str) -> str:
        return canonical(name)

    def key(self, provider: str) -> str:
        key = self._chooser.key(provider)
        self._ground.mask.add(key)  # whoever has it now may show it
        return key

    def _keep(self, info: ModelInfo) -> None:
        config = self._ground.config
        if config.base_url and canonical(config.provider) != info.provider:
            # With another name above it, another provider's key would be sent there.
            raise ConfigError(
                f"{info.provider}/{info.id} is in use now, but was not made the default: "
                f"{self._ground.home.config} has a base_url, which is {config.provider}'s",
                hint="change provider, model and base_url there together",
            )
        try:
            prefer(self._ground.home.config, {"provider": info.provider, "model": info.id})
        except ConfigError as error:
            message = f"{info.provider}/{info.id} is in use now, but was not made the default: {error.message}"
            raise ConfigError(message, hint=error.hint) from error

    def _refresh(self) -> None:
        """What is said anew of the model in use counts from the next turn on."""
        active = self._session.active
        if not active.info.extension and not active.pending:
            info = self._ground.catalogue.find(active.info.provider, active.info.id)
            address = info.base_url or active.info.base_url
            self._session.active = structs.replace(active, info=structs.replace(info, base_url=address))


def _listing(info: ModelInfo, current: tuple[str, str]) -> ModelListing:
    return ModelListing(
        id=info.id,
        provider=info.provider,
        api=info.spoken,
        name=info.name or info.id,
        current=(info.provider, info.id) == current,
        context_window=info.context_window,
        max_output=info.max_output,
        reasoning=info.reasoning,
        cost_input=info.price.input if info.price else 0.0,
        cost_output=info.price.output if info.price else 0.0,
        extension=info.extension,
    )
