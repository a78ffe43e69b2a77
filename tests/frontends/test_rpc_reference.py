"""The reference page lists what there is: no command, event or field is missing from it."""

from pathlib import Path
from typing import get_args

import msgspec

from hilt.frontends.rpc_commands import COMMANDS
from hilt.model.actions import Action
from hilt.model.events import Decided, Event, PickerAsked, PromptSubmitted, QuestionAsked, RunStarted, StepLimitReached
from hilt.model.extensions import ExtensionStatus, Reloaded
from hilt.model.ports import PermissionRequest

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "rpc.md").read_text()
ROWS = [row for row in PAGE.split("\n") if row.startswith("| `")]


UNTOLD = (PromptSubmitted, RunStarted, StepLimitReached)


def described(name: str, fields: list[str]) -> bool:
    """Whether one row of a table begins with this name and names all these fields."""
    return any(f"`{name}`" in row.split(" | ")[0] and all(f"`{field}`" in row for field in fields) for row in ROWS)


def fields_of(shape: type) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(shape)]


def test_every_command_is_described_with_its_fields() -> None:
    for name, command in COMMANDS.items():
        assert described(name, fields_of(command.fields)), name


def test_every_event_that_clients_are_told_is_described_with_its_fields() -> None:
    for kind in get_args(Event):
        name = kind.__struct_config__.tag
        flattened = name in ("ui_request", "usage")
        fields = [] if flattened else fields_of(kind)
        if name == "tool_result":  # the others are for extensions
            fields = ["id", "name", "is_error", "content", "extension", "changed_by"]
        if name == "tool_call":
            fields.remove("known")
        assert described(name, fields) is (kind not in UNTOLD), name


def test_what_is_told_about_an_extension_a_decision_and_a_reload_is_described() -> None:
    for field in (*fields_of(ExtensionStatus), *fields_of(Decided)):
        assert any(f"`{field}`" in row.split(" | ")[0] for row in ROWS), field
    assert described("reload_ext", fields_of(Reloaded))


def test_a_question_is_described_with_its_fields() -> None:
    for field in fields_of(PermissionRequest):
        assert f"`{field}`" in PAGE
    for field in {*fields_of(PickerAsked), *fields_of(QuestionAsked)}:
        assert any(f"`{field}`" in row.split(" | ")[0] for row in ROWS), field


def test_everything_that_can_be_the_action_of_a_command_is_described() -> None:
    unasked = {"open_panel", "render_panel", "close_panel", "clear_notes", "settle", "revive"}
    for kind in get_args(Action):
        name = kind.__struct_config__.tag
        assert name in unasked or described(name, fields_of(kind)), name
