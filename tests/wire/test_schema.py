"""The published schema is the one the types make, and real lines fit it."""

import json

import jsonschema_rs
import pytest

from wire import frames_schema
from wire.lines import EXTENSION_LINES, HOST_LINES


def test_the_published_schema_is_the_one_the_types_make() -> None:
    assert frames_schema.FILE.read_text() == frames_schema.text(), "run tests/wire/frames_schema.py"


def test_every_frame_has_its_definition() -> None:
    assert frames_schema.names() <= set(frames_schema.frames_schema()["$defs"])


@pytest.mark.parametrize(
    ("direction", "line"),
    [("ExtensionFrame", line) for line in EXTENSION_LINES] + [("HostFrame", line) for line in HOST_LINES],
)
def test_real_lines_fit_the_schema_of_their_direction(direction: str, line: bytes) -> None:
    schema = frames_schema.frames_schema()
    validator = jsonschema_rs.validator_for({"$ref": f"#/$defs/{direction}", "$defs": schema["$defs"]})
    validator.validate(json.loads(line))


@pytest.mark.parametrize(
    "line", ['{"type":"tool_result","id":7}', '{"type":"nonsense"}', '{"type":"tool_call","id":"1"}', "[]"]
)
def test_lines_that_are_no_frames_do_not_fit(line: str) -> None:
    assert not jsonschema_rs.validator_for(frames_schema.frames_schema()).is_valid(json.loads(line))
