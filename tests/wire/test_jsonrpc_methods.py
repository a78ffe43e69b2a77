"""Every method has its params and its result, spelt as extensions know them."""

import pytest
from msgspec import Raw

from hilt.wire import jsonrpc
from hilt.wire.jsonrpc_methods import METHODS
from hilt.wire.jsonrpc_reading import read
from wire.jsonrpc_examples import EXAMPLES, Example

LIFECYCLE = "initialize shutdown $/cancelRequest"
REGISTRATION = (
    "tool command promptSection interceptor eventHandler shortcut messageHook inputTransformer compactor provider"
)
CALLBACKS = (
    "tool/execute command/execute interceptor/before interceptor/after event/dispatch shortcut/handle "
    "messageHook/onMessage inputTransformer/transform compact/execute provider/stream eventBus/event provider/delta"
)
NOTICES = (
    "setWidget showOverlay closeOverlay notify log showMessage sendMessage setInputText steer abort abortWithMarker"
)
SERVICES = (
    "listTools executeTool toolDefs activateTool setToolFilter config.get config.readExtension auth.getKey chat "
    "agent.run runBackground cancelBackground isBackgroundRunning conversationMessages setConversationMessages "
    "llmSnapshot lastAssistantText waitForIdle sessions loadSession forkSession sessionTitle setSessionTitle "
    "sessionStats appendSessionEntry appendCustomMessage setLabel branchSession branchSessionWithSummary "
    "resetSessionLeaf sessionEntryInfos sessionFullTree availableModels switchModel syncModels writeModels showPicker "
    "askUser toggleStepMode requestQuit abort hasCompactor triggerCompact commands shortcuts promptSections extInfos "
    "extensionsDir undoSnapshots undoRestore publish subscribe"
)
ADDITIONS = (
    "panel/open panel/render panel/close panel/key panel/resize panel/closed tool/progress interceptor/event setStatus "
    "host/unsubscribe"
)


def test_the_table_has_the_88_methods_of_the_protocol_and_what_is_added() -> None:
    known = {
        *LIFECYCLE.split(),
        *(f"register/{kind}" for kind in REGISTRATION.split()),
        *CALLBACKS.split(),
        *NOTICES.split(),
        *(f"host/{name}" for name in SERVICES.split()),
    }
    assert len(known) == 88
    assert {name for name, method in METHODS.items() if not method.added} == known
    assert {name for name, method in METHODS.items() if method.added} == set(ADDITIONS.split())


def test_each_method_goes_the_way_the_protocol_says() -> None:
    notices = {*LIFECYCLE.split()[1:], *NOTICES.split(), "eventBus/event", "provider/delta"}
    notices |= {name for name in METHODS if name.startswith("register/")}
    for name, method in METHODS.items():
        if not method.added:
            assert method.kind == ("notice" if name in notices else "request"), name
    from_host = {"initialize", "shutdown", *CALLBACKS.split()} - {"provider/delta"}
    from_host |= {"panel/key", "panel/resize", "panel/closed", "interceptor/event"}
    assert {name for name, method in METHODS.items() if method.direction == "host->ext"} == from_host
    assert METHODS["$/cancelRequest"].direction == "both"


def test_there_is_an_example_of_every_method() -> None:
    assert [example.method for example in EXAMPLES] == list(METHODS)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.method)
def test_what_a_method_carries_is_read_exactly_and_written_as_it_was(example: Example) -> None:
    method = METHODS[example.method]
    params = read(Raw(example.params.encode()), method.params)
    line = f'{{"jsonrpc":"2.0","id":3,"method":"{example.method}","params":{example.params}}}'
    assert jsonrpc.request(3, example.method, params).decode() == line
    assert (method.result is not None) == bool(example.result)
    if method.result is not None:
        result = read(Raw(example.result.encode()), method.result)
        assert jsonrpc.reply(3, result).decode() == f'{{"jsonrpc":"2.0","id":3,"result":{example.result}}}'


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if method.direction == "ext->host"])
def test_what_an_extension_sends_may_lack_everything(name: str) -> None:
    shape = METHODS[name].params
    assert read(Raw(b"{}"), shape) == read(Raw(b"null"), shape) == shape()
