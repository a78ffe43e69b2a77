"""The catalogue of models, and which one is in use."""

from hilt.errors import ServiceFault
from hilt.extensions.capabilities import SUBMIT
from hilt.extensions.services.asking import Asker, Backing, Service, Table
from hilt.model.services import ModelListing, ModelOverride
from hilt.wire.faults import INTERNAL
from hilt.wire.jsonrpc_services import (
    AvailableModel,
    AvailableModelsResult,
    SwitchModel,
    SyncModelsResult,
    WriteModels,
    WriteModelsResult,
)
from hilt.wire.jsonrpc_types import Empty


async def available(backing: Backing, _: Empty, __: Asker) -> AvailableModelsResult:
    return AvailableModelsResult(tuple(map(_listed, backing.facilities.models.list())))


def _listed(model: ModelListing) -> AvailableModel:
    return AvailableModel(
        id=model.id,
        api=model.api,
        display_name=f"{model.provider}/{model.name or model.id}",
        provider=model.provider,
        current=model.current,
        context_window=model.context_window,
        max_tokens=model.max_output,
        reasoning=model.reasoning,
        cost_input=model.cost_input,
        cost_output=model.cost_output,
    )


async def switch(backing: Backing, params: SwitchModel, asker: Asker) -> Empty:
    if not params.model_id:
        raise ServiceFault(INTERNAL, "modelId is required")
    await backing.facilities.models.switch(params.model_id, asker.name, keep=params.persist_default)
    return Empty()


async def sync(backing: Backing, _: Empty, __: Asker) -> SyncModelsResult:
    return SyncModelsResult(await backing.facilities.models.sync())


async def write(backing: Backing, params: WriteModels, _: Asker) -> WriteModelsResult:
    overrides = {
        model: ModelOverride(wanted.name, wanted.context_window, wanted.max_tokens)
        for model, wanted in params.overrides.items()
    }
    return WriteModelsResult(await backing.facilities.models.write(overrides))


SERVICES: Table = {
    "host/availableModels": Service(available),
    "host/switchModel": Service(switch, (SUBMIT,), failing="switch model"),
    "host/syncModels": Service(sync, failing="sync models"),
    "host/writeModels": Service(write, (SUBMIT,), failing="write models"),
}
