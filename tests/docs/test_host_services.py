"""The page about the host's services has every method with what it takes, gives and needs, and the code's numbers."""

import re
from collections.abc import Iterator
from typing import Annotated, Any, get_args, get_origin

import pytest
from msgspec import Struct
from msgspec.structs import fields

from docs.fences import ROOT
from hilt.agent.topics import TAIL
from hilt.extensions import chores
from hilt.extensions.capabilities import needed_to_follow
from hilt.extensions.services import asking, minds
from hilt.extensions.services.table import SERVICES
from hilt.frontends import rpc
from hilt.wire import faults
from hilt.wire.jsonrpc_methods import METHODS

PAGE = (ROOT / "docs/reference/host-services.md").read_text(encoding="utf-8")
_TABLES = [[cell.strip() for cell in row[1:-1].split("|")] for row in PAGE.split("\n") if row.startswith("| `host/")]
ROWS = {cells[0].split("`")[1]: cells for cells in _TABLES if len(cells) == 5}
OF_A_PROVIDER = {"host/auth.getKey": "auth:PROVIDER"}
"""What is needed depends on the params."""


def test_every_method_has_a_row_and_nothing_else_has_one() -> None:
    assert sorted(ROWS) == sorted(SERVICES)


@pytest.mark.parametrize("method", sorted(SERVICES))
def test_a_row_names_all_that_is_taken_and_given_and_what_is_needed(method: str) -> None:
    name, params, result, needs, _ = ROWS[method]
    known = METHODS[method]
    assert known.result
    assert _coded(params) >= set(_members(known.params)) and _coded(result) >= set(_members(known.result))
    assert not (_coded(params) - set(_members(known.params)) - _words(params)), "a member that there is not"
    assert not (_coded(result) - set(_members(known.result)) - _words(result)), "a member that there is not"
    expected = [OF_A_PROVIDER[method]] if method in OF_A_PROVIDER else list(SERVICES[method].needs)
    assert re.findall(r"`([^`]+)`", needs) == expected
    assert name.endswith("➕") is known.added


def _coded(cell: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", cell))


def _words(cell: str) -> set[str]:
    """What may stand in a member, rather than being one."""
    return {word for word in _coded(cell) if word in {"all", "background_safe", "provider/id"}}


def _members(shape: Any) -> Iterator[str]:
    """Of an object, and of the objects in it."""
    if get_origin(shape) is Annotated or get_args(shape):
        for part in get_args(shape):
            yield from _members(part)
    elif isinstance(shape, type) and issubclass(shape, Struct):
        for member in fields(shape):
            yield member.encode_name
            yield from _members(member.type)


def test_the_times_are_those_of_the_code() -> None:
    section = PAGE.split("## Time\n")[1].split("\n## ")[0]
    assert f"answered after {asking.USUAL:g} s" in section
    told: dict[str, str] = {}
    for methods, time in re.findall(r"^\| (`host.*?) \| (.*) \|$", section, re.MULTILINE):
        told |= dict.fromkeys(re.findall(r"`([^`]+)`", methods), time)
    for method, service in SERVICES.items():
        if service.seconds is None:
            assert told.pop(method) == "as long as it takes"
        elif method == "host/agent.run":
            assert service.seconds == asking.LONG + minds._TO_END and told.pop(method).startswith(f"{asking.LONG:g} s,")
        elif service.seconds != asking.USUAL:
            assert told.pop(method) == f"{service.seconds:g} s"
    assert told == {}


def test_the_codes_and_limits_are_those_of_the_code() -> None:
    section = PAGE.split("## Errors\n")[1].split("\n## ")[0]
    codes = {faults.METHOD_NOT_FOUND, faults.INVALID_PARAMS, faults.INVALID_REQUEST, faults.NOT_FOUND, faults.INTERNAL}
    assert {-int(code) for code in re.findall(r"^\| −(\d+)", section, re.MULTILINE)} == codes
    (special,) = [method for method, service in SERVICES.items() if service.unreadable == faults.INVALID_REQUEST]
    assert f"−32600 | the same for `{special}`" in section
    subscribing = ROWS["host/subscribe"][-1]
    assert f"At most {asking.SUBSCRIPTIONS}." in subscribing
    assert f"`{TAIL}` needs `{needed_to_follow(TAIL)[0]}`" in subscribing
    assert f"`maxTurns`? ({minds._TURNS})" in ROWS["host/agent.run"][1]
    assert f"Of one asker {chores._AT_ONCE} are at work" in PAGE and chores._AT_ONCE == rpc._BESIDE
