"""What is confided to an extension without a list of permissions: nothing, until somebody has agreed to that; and what
each thing it can do or offer needs of one that has a list."""

from typing import Any

import pytest

from hilt.extensions.capabilities import (
    CALL,
    READ,
    SUBMIT,
    WRITE,
    Capabilities,
    needed_to_amend,
    needed_to_do,
    needed_to_follow,
    needed_to_offer,
)
from hilt.model.actions import (
    Abort,
    Action,
    AttachImage,
    CloseOverlay,
    DetachImage,
    Display,
    Notify,
    Quit,
    Rename,
    SendMessage,
    SetInput,
    SetStatus,
    SetWidget,
    Steer,
    Submit,
    ToolPrompt,
)
from hilt.model.content import Text
from hilt.model.contributions import (
    Command,
    Compactor,
    Contribution,
    InputTransformer,
    Interceptor,
    MessageHook,
    ModelSource,
    PromptSection,
    ResultInterceptor,
    Shortcut,
    Tool,
    ToolOutput,
)
from hilt.packages.permissions import Permissions

UNASKED = Permissions()
AGREED = Permissions(consented=True)
CONFIDED = ("auth:openai", READ, WRITE)
ORDINARY = (CALL, SUBMIT, "fs.write", "net", "exec")


@pytest.mark.parametrize("permission", CONFIDED)
def test_without_a_list_the_conversation_and_keys_are_had_only_after_a_consent(permission: str) -> None:
    assert Capabilities(AGREED, "t").refusal(permission, asking=True) == ""
    refusal = Capabilities(UNASKED, "t").refusal(permission, asking=True)
    assert "nobody has agreed to full access" in refusal
    assert refusal.endswith(f"(hilt ext grant t {permission})")


@pytest.mark.parametrize("permission", ORDINARY)
def test_without_a_list_all_else_is_had_without_a_consent(permission: str) -> None:
    assert Capabilities(UNASKED, "t").allows(permission, asking=True)


@pytest.mark.parametrize("permission", [READ, WRITE])
def test_without_a_list_it_may_watch_and_hook_in_without_a_consent_as_it_always_could(permission: str) -> None:
    assert Capabilities(UNASKED, "t").refusal(permission) == ""


@pytest.mark.parametrize("permission", CONFIDED)
def test_one_thing_can_be_granted_without_consenting_to_the_others(permission: str) -> None:
    mine = Capabilities(Permissions(granted=(permission,)), "t")
    assert [one for one in CONFIDED if mine.allows(one, asking=True)] == [permission]


@pytest.mark.parametrize("permission", CONFIDED)
def test_what_was_revoked_is_refused_whatever_was_consented(permission: str) -> None:
    mine = Capabilities(Permissions(revoked=(permission,), consented=True), "t")
    assert f'it lacks "{permission}"' in mine.refusal(permission, asking=True)
    assert [one for one in CONFIDED if not mine.allows(one, asking=True)] == [permission]


@pytest.mark.parametrize("permission", CONFIDED)
def test_with_a_list_the_list_counts_and_a_consent_adds_nothing(permission: str) -> None:
    for asking in (False, True):
        assert not Capabilities(Permissions(full=False, consented=True), "t").allows(permission, asking=asking)
        assert Capabilities(Permissions(full=False, granted=(permission,)), "t").allows(permission, asking=asking)


@pytest.mark.parametrize(
    ("action", "needed"),
    [
        (Submit("x"), (SUBMIT,)),
        (SendMessage("x"), (SUBMIT,)),
        (Steer("x"), (SUBMIT,)),
        (SetInput("x"), (SUBMIT,)),
        (Abort(), (SUBMIT,)),
        (Abort("why"), (SUBMIT,)),
        (Quit(), (SUBMIT,)),
        (AttachImage(b"", "image/png"), (SUBMIT,)),
        (DetachImage(), (SUBMIT,)),
        (ToolPrompt("t", {}, "x"), (CALL, SUBMIT)),
        (Rename("x"), (WRITE,)),
        (Display("x"), ()),
        (Notify("info", "x"), ()),
        (SetWidget("k", "above-input", "x"), ()),
        (SetStatus("k", "x"), ()),
        (CloseOverlay("k"), ()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_acts_for_the_user_needs_a_permission_and_what_shows_something_does_not(
    action: Action, needed: tuple[str, ...]
) -> None:
    assert needed_to_do(action) == needed


async def never(_: Any) -> Any:
    raise AssertionError("nobody asked for this")


def unasked(_: Any) -> Any:
    raise AssertionError("nobody asked for this")


async def unpressed() -> tuple[()]:
    return ()


@pytest.mark.parametrize(
    ("contribution", "needed"),
    [
        (MessageHook(never), (READ, WRITE)),
        (InputTransformer(never), (READ, WRITE)),
        (Compactor("c", never), (READ, WRITE)),
        (ModelSource("api", unasked), (READ, WRITE, CALL)),
        (ResultInterceptor(never), (READ,)),
        (Interceptor("tool_call", unasked), ()),
        (Interceptor("assistant_message", unasked), (READ,)),
        (PromptSection("t", "c"), (WRITE,)),
        (Tool("t", "", {}, never), ()),
        (Command("c", "", never), ()),
        (Shortcut("ctrl+g", "", unpressed), ()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_sees_or_changes_what_is_said_needs_permissions_to_be_offered(
    contribution: Contribution, needed: tuple[str, ...]
) -> None:
    assert needed_to_offer(contribution) == needed


def test_changing_a_result_needs_a_permission_and_adding_details_does_not() -> None:
    was = ToolOutput.of("text")
    assert needed_to_amend(was, ToolOutput.of("text", lines=3)) == ()
    assert needed_to_amend(was, ToolOutput.of("other")) == (WRITE,)
    assert needed_to_amend(was, ToolOutput.of("text", is_error=True)) == (WRITE,)
    assert needed_to_amend(was, ToolOutput((Text("text"), Text("more")))) == (WRITE,)


def test_topics_of_extensions_are_anybodys() -> None:
    assert needed_to_follow("news") == () and needed_to_follow("bash.tail") == (READ,)
