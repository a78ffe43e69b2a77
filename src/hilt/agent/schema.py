"""Checking a tool's arguments against its JSON Schema."""

import logging
from typing import TYPE_CHECKING, Any

import msgspec

from hilt.model.content import Args

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

log = logging.getLogger(__name__)

_SHOWN = 5
_KEPT = 512
_ELSEWHERE = "references to other documents are not followed"


def problems(schema: dict[str, Any], args: Args) -> list[str]:
    """What is wrong with the arguments, each naming its field; empty when they fit.

    With a schema that is none nothing can be checked: the tool gets what there is, as it does from other agents. One
    that refers elsewhere is not such: it may say much, and nobody here looks there.
    """
    made = _made.get(id(schema))
    validator = made[1] if made else _validator(schema)
    if isinstance(validator, str):
        return [validator] if validator else []
    if validator.is_valid(args):  # a tenth of the time it takes to look for all that is wrong
        return []
    found = [_explain(error) for error in validator.iter_errors(args)]
    return found[:_SHOWN] + ([f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else [])


_made: dict[int, tuple[dict[str, Any], Any]] = {}
"""By identity, which holds as long as the schema is kept here too: a tool's schema does not change."""


def _validator(schema: dict[str, Any]) -> Any:
    """Or why there is none: empty where that is no reason to refuse the call."""
    # 35 ms, paid at the first tool call and not at start-up.
    import jsonschema_rs

    validator: Any
    try:
        validator = jsonschema_rs.validator_for(msgspec.json.encode(schema).decode(), retriever=_refuse)
    except ValueError as error:
        why = str(error).splitlines()[0]
        validator = f"the tool's own schema is not valid: {why}" if _ELSEWHERE in why else ""
        log.warning("the tool's own schema is not valid, so arguments go unchecked or are refused: %s", why)
    if len(_made) >= _KEPT:
        _made.pop(next(iter(_made)))
    _made[id(schema)] = (schema, validator)
    return validator


def _refuse(uri: str) -> Any:
    """By default the library fetches remote and file references; a tool must not make us read either."""
    raise ValueError(f"{_ELSEWHERE}: {uri}")


def _explain(error: "ValidationError") -> str:
    where = ".".join(str(part) for part in error.instance_path)
    return f"{where}: {error.message}" if where else error.message
