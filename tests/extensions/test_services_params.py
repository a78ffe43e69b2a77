"""Whatever an extension sends as params, it gets a result or a fault that can be put on a line, and nothing breaks."""

import asyncio
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import fields

from hilt.errors import ServiceFault
from hilt.extensions.services.table import SERVICES
from hilt.wire.jsonrpc_methods import METHODS
from support.facilities import Served
from support.properties import patient

NAMES = sorted({one.encode_name for method in SERVICES for one in fields(METHODS[method].params)})
TEXT = st.text(max_size=20) | st.sampled_from(["t", "\x1b[2J", "\ud800", "../..", "openai", "assistant", "x" * 5000])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**63, -(2**70), 10**300])
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from([*NAMES, "role", "type", "data", "id", "Content"]) | TEXT, inner, max_size=4)
    ),
    max_leaves=12,
)
PARAMS = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4) | VALUES


@patient
@given(st.sampled_from(sorted(SERVICES)), PARAMS)
def test_any_params_are_answered_or_refused_by_a_fault_that_can_be_sent(method: str, params: Any) -> None:
    raw = Raw(json_of(params))

    async def ask() -> None:
        served = Served()
        try:
            answer = await served.services.answer(method, raw, served.asker)
        except ServiceFault as fault:
            answer = {"code": fault.code, "message": fault.message}
        msgspec.json.encode(answer)

    asyncio.run(ask())


@patient
@given(st.sampled_from(sorted(SERVICES)), st.binary(max_size=40))
def test_params_that_are_no_json_are_refused_by_a_fault(method: str, raw: bytes) -> None:
    async def ask() -> None:
        served = Served()
        try:
            await served.services.answer(method, Raw(raw), served.asker)
        except ServiceFault:
            pass

    asyncio.run(ask())


def json_of(value: Any) -> bytes:
    """As a program would write it that takes no care of what text is."""
    import json

    return json.dumps(value).encode()
