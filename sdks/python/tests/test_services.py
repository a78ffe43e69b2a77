"""Every host service has a method, asked for by its own name."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hilt_sdk import Extension, HostError, NotConnected, NotOffered
from hilt_sdk.testing import Host
from hilt_sdk.transport import encoded

REFERENCE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "host-services.md"
CALLS: dict[str, tuple[Any, ...]] = {
    "list_tools": (),
    "tool_defs": (),
    "execute_tool": ("read",),
    "activate_tool": ("read",),
    "set_tool_filter": (["read"],),
    "config": (["a"],),
    "read_extension": ("demo",),
    "auth_key": ("openai",),
    "extensions_dir": (),
    "chat": ("hi",),
    "agent_run": ("go",),
    "run_background": ("go",),
    "cancel_background": (),
    "is_background_running": (),
    "conversation_messages": (),
    "set_conversation_messages": ([],),
    "llm_snapshot": (),
    "last_assistant_text": (),
    "wait_for_idle": (),
    "has_compactor": (),
    "trigger_compact": (),
    "toggle_step_mode": (),
    "sessions": (),
    "load_session": ("p",),
    "fork_session": (),
    "session_title": (),
    "set_session_title": ("t",),
    "session_stats": (),
    "append_session_entry": ("k",),
    "append_custom_message": ("c",),
    "set_label": ("e", "l"),
    "branch_session": ("e",),
    "branch_session_with_summary": ("e", "s"),
    "reset_session_leaf": (),
    "session_entry_infos": (),
    "session_full_tree": (),
    "available_models": (),
    "switch_model": ("a/b",),
    "sync_models": (),
    "write_models": ({},),
    "pick": ("t", ["a"]),
    "ask": ("p", ["a"]),
    "request_quit": (),
    "abort": (),
    "commands": (),
    "shortcuts": (),
    "prompt_sections": (),
    "ext_infos": (),
    "undo_snapshots": (),
    "undo_restore": ("p",),
    "publish": ("t", 1),
    "subscribe": ("t", print),
    "unsubscribe": (1,),
}


@pytest.mark.parametrize("dialect", ["frames", "jsonrpc"])
def test_every_service_of_the_reference_can_be_asked_for(dialect: str) -> None:
    ext = Extension("demo")
    asked: list[str] = []

    def served(method: str) -> Callable[[Any], Any]:
        def answer(_: Any) -> dict[str, Any]:
            asked.append(method)
            return {}

        return answer

    methods = re.findall(r"^\| `(host/[\w.]+)`", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE)
    with Host(ext, dialect=dialect) as host:
        for method in methods:
            host.answers[method] = served(method)
        for name, args in CALLS.items():
            getattr(ext.host, name)(*args)
    assert sorted(set(asked)) == sorted(set(methods))


def test_answers_arrive_in_plain_values_and_errors_as_exceptions() -> None:
    ext = Extension("demo")
    with Host(ext) as host:
        host.answers["host/chat"] = lambda params: {"text": params["messages"][0]["content"].upper()}
        assert ext.host.chat("hi").text == "HI"
        host.answers["host/showPicker"] = lambda params: {"selected": params["items"][1]["id"]}
        assert ext.host.pick("Which?", ["a", "b"]) == "b"
        host.answers["host/askUser"] = {"selected": "", "cancelled": True}
        assert ext.host.ask("Sure?", ["Yes"]) is None
        host.answers["host/config.get"] = lambda params: {"values": {"units": "c"}}
        assert (ext.settings["units"], ext.settings.get("other", 3), "other" in ext.settings) == ("c", 3, False)
        host.answers["host/sessionTitle"] = HostError(-32603, "permission denied: demo may not")
        with pytest.raises(HostError, match="permission denied") as error:
            ext.host.session_title()
        assert error.value.code == -32603
        host.answers["host/executeTool"] = lambda params: f"{params['name']} {params['args']}"
        assert ext.call_tool("read", {"a": 1}).text == "read {'a': 1}"
    with pytest.raises(NotConnected):
        ext.host.session_title()


def test_a_request_that_takes_too_long_is_taken_back() -> None:
    ext = Extension("demo")
    with Host(ext) as host:
        host.answers["host/waitForIdle"] = lambda params: host.wait(lambda: taken_back(host))
        with pytest.raises(TimeoutError, match=r"within 0\.05 s"):
            ext.host.wait_for_idle(timeout=0.05)
        host.wait(lambda: taken_back(host))


def taken_back(host: Host) -> bool:
    return any(method == "$/cancelRequest" for method, _ in host.told)


def test_what_is_published_comes_in_order_from_the_first_on() -> None:
    ext = Extension("demo")
    heard: list[Any] = []
    with Host(ext, dialect="jsonrpc") as host:
        number = ext.host.subscribe("news", heard.append)
        for count in range(20):
            host.publish("news", count)
        assert heard == list(range(20))
        host.answers["host/unsubscribe"] = {}
        ext.host.unsubscribe(number)
        host.publish("news", "unheard")
        assert heard == list(range(20))


def test_what_comes_right_behind_the_answer_to_subscribe_is_heard() -> None:
    ext = Extension("demo")
    heard: list[Any] = []
    with Host(ext, dialect="jsonrpc") as host:
        event = {"topic": "news", "subscriptionId": 9, "data": "at once"}

        def serve(method: str, params: Any, key: Any) -> None:
            answer = {"jsonrpc": "2.0", "id": key, "result": {"subscriptionId": 9}}
            host._pipes.write(
                encoded(answer) + encoded({"jsonrpc": "2.0", "method": "eventBus/event", "params": event})
            )

        host._serve = serve  # type: ignore[method-assign]  # a host that is quicker than any test could be
        ext.host.subscribe("news", heard.append)
        host.wait(lambda: heard)
    assert heard == ["at once"]


def test_a_host_without_services_says_so() -> None:
    ext = Extension("demo")
    with Host(ext, host="zot"):
        with pytest.raises(NotOffered, match=r"zot 0\.1\.62 does not offer host services"):
            ext.host.session_title()
        assert ext.settings.get("units", "metric") == "metric"
