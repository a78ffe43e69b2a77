"""Checking a tool's arguments against its JSON Schema."""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from hilt.model.content import Args

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

_SHOWN = 5


def problems(schema: dict[str, Any], args: Args) -> list[str]:
    """What is wrong with the arguments, each naming its field; empty when they fit."""
    try:
        validator = _validator(msgspec.json.encode(schema))
    except ValueError as error:
        return [f"the tool's own schema is not valid: {str(error).splitlines()[0]}"]
    found = [_explain(error) for error in validator.iter_errors(args)]
    return found[:_SHOWN] + ([f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else [])


@lru_cache(maxsize=512)
def _validator(schema: bytes) -> Any:
    # 35 ms, paid at the first tool call and not at start-up.
    import jsonschema_rs

    return jsonschema_rs.validator_for(schema.decode(), retriever=_refuse)


def _refuse(uri: str) -> Any:
    """By default the library fetches remote and file references; a tool must not make us read either."""
    raise ValueError(f"references to other documents are not followed: {uri}")


def _explain(error: "ValidationError") -> str:
    where = ".".join(str(part) for part in error.instance_path)
    return f"{where}: {error.message}" if where else error.message
