from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.extensions.agent import Places
from hilt.extensions.confinement import policy
from hilt.packages.choices import Choices
from hilt.packages.discovery import Found
from hilt.packages.environment import environment
from hilt.packages.manifest import Manifest
from hilt.packages.permissions import CONSENTED, Permissions, effective, meaning, problem
from support.properties import patient

PATHS = ("", "/etc", "${project}", "${project}/src", "${data}", "~/notes")
POSSIBLE = (
    *(f"{kind}:{path}" if path else kind for kind in ("fs.read", "fs.write") for path in PATHS),
    *("net", "net:example.org", "net:*.example.org:443", "exec"),
    *("env", "env:GITHUB_TOKEN", "env:HOME", "auth:openai", "auth:anthropic"),
    *("conversation:read", "conversation:write", "ui:submit", "tools:call"),
)
some = st.lists(st.sampled_from(POSSIBLE), max_size=6).map(tuple)
one = st.sampled_from(POSSIBLE)


def kind(permission: str) -> str:
    return permission.partition(":")[0]


@patient
@given(asked=st.none() | some, granted=some, revoked=some, wanted=one)
def test_what_was_revoked_is_never_allowed(
    asked: tuple[str, ...] | None, granted: tuple[str, ...], revoked: tuple[str, ...], wanted: str
) -> None:
    rights = effective(asked, granted, revoked)
    if wanted in revoked or (kind(wanted) in revoked and kind(wanted) in ("fs.read", "fs.write", "net", "env", "exec")):
        assert not rights.allows(wanted)
    for what in ("fs.read", "fs.write"):
        paths = rights.paths(what)
        if what in revoked:
            assert paths == ()
        assert not {f"{what}:{path}" for path in paths or ()} & set(revoked)
        assert set(rights.withdrawn(what)) == {path for path in PATHS if path and f"{what}:{path}" in revoked}


@patient
@given(asked=some, granted=some, revoked=some, wanted=one)
def test_what_was_neither_asked_for_nor_granted_is_not_allowed(
    asked: tuple[str, ...], granted: tuple[str, ...], revoked: tuple[str, ...], wanted: str
) -> None:
    rights = effective(asked, granted, revoked)
    named = {*asked, *granted}
    whole = kind(wanted) in named and kind(wanted) in ("fs.read", "fs.write", "net", "env", "exec")
    some_host = wanted == "net" and any(kind(each) == "net" for each in named)
    if rights.allows(wanted):
        assert wanted in named or whole or some_host
    for what in ("fs.read", "fs.write"):
        for path in rights.paths(what) or ():
            assert f"{what}:{path}" in named


@patient
@given(asked=st.none() | some, granted=some, revoked=some, wanted=one.filter(lambda name: kind(name) in CONSENTED))
def test_the_environment_and_keys_are_never_had_without_a_grant(
    asked: tuple[str, ...] | None, granted: tuple[str, ...], revoked: tuple[str, ...], wanted: str
) -> None:
    if effective(asked, granted, revoked).allows(wanted):
        assert wanted in granted or (kind(wanted) == "env" and "env" in granted)


@patient
@given(asked=st.none() | some, granted=some, revoked=some)
def test_more_grants_never_take_away_and_more_refusals_never_give(
    asked: tuple[str, ...] | None, granted: tuple[str, ...], revoked: tuple[str, ...]
) -> None:
    rights = effective(asked, granted, revoked)
    for permission in POSSIBLE:
        if rights.allows(permission):
            assert effective(asked, (*granted, "exec", "fs.read:/srv"), revoked).allows(permission)
        else:
            assert not effective(asked, granted, (*revoked, "exec", "net")).allows(permission)


@patient
@given(granted=some, revoked=some)
def test_without_a_list_all_is_allowed_but_what_was_revoked_and_what_needs_consent(
    granted: tuple[str, ...], revoked: tuple[str, ...]
) -> None:
    rights = effective(None, granted, revoked)
    for permission in POSSIBLE:
        if kind(permission) not in CONSENTED and not {permission, kind(permission)} & set(revoked):
            assert rights.allows(permission)


@pytest.mark.parametrize("permission", ["auth:openai", "conversation:read", "conversation:write"])
def test_keys_and_the_conversation_are_given_with_full_access_only_once_that_was_agreed_to(permission: str) -> None:
    unasked, agreed = effective(None, (), ()), effective(None, (), (), consented=True)
    assert not unasked.may_ask(permission) and agreed.may_ask(permission)
    assert effective(None, (permission,), ()).may_ask(permission), "or once it was granted by name"
    assert not effective(None, (), (permission,), consented=True).may_ask(permission)
    assert not effective((), (), (), consented=True).may_ask(permission), "a list is a list, whoever agreed to it"
    assert effective((), (permission,), ()).may_ask(permission)


def test_a_grant_to_one_with_full_access_takes_nothing_away() -> None:
    rights = effective(None, ("auth:openai",), ())
    assert rights.full and not rights.confined
    assert rights.may_ask("auth:openai") and not rights.may_ask("auth:anthropic")
    assert all(rights.may_ask(one) for one in ("tools:call", "ui:submit", "net", "exec", "fs.write"))


def test_agreeing_to_full_access_hands_out_no_secret_variable() -> None:
    assert not effective(None, (), (), consented=True).may_ask("env:OPENAI_API_KEY")


def test_an_empty_list_grants_nothing() -> None:
    rights = effective((), (), ())
    assert not any(map(rights.allows, POSSIBLE))
    assert (rights.paths("fs.read"), rights.paths("fs.write"), rights.confined) == ((), (), True)


def test_a_host_that_was_revoked_is_no_reason_to_open_the_network() -> None:
    assert effective(("net:a.example",), (), ()).allows("net")
    assert not effective(("net:a.example",), (), ("net:a.example",)).allows("net")
    assert not effective(("net:a.example",), (), ("net",)).allows("net")


def test_a_whole_kind_that_was_revoked_takes_single_paths_with_it() -> None:
    assert effective(("fs.read:/etc",), ("fs.read:/srv",), ("fs.read",)).paths("fs.read") == ()
    assert effective(("fs.read:/etc",), ("fs.read:/srv",), ()).paths("fs.read") == ("/etc", "/srv")
    assert effective(("fs.read",), (), ()).paths("fs.read") is None


@pytest.mark.parametrize("revoked", ["fs.read", "fs.write:/etc", "net", "exec"])
def test_full_access_from_which_something_was_taken_needs_a_sandbox(revoked: str) -> None:
    assert not effective(None, (), ()).confined
    assert effective(None, (), (revoked,)).confined
    assert not effective(None, (), ("conversation:read", "auth:openai")).confined  # the host sees to these


@patient
@given(asked=st.none() | some, revoked=some)
def test_no_secret_variable_reaches_a_process_without_a_grant(
    asked: tuple[str, ...] | None, revoked: tuple[str, ...]
) -> None:
    ambient = {"GITHUB_TOKEN": "x" * 20, "OPENAI_API_KEY": "y" * 20, "HOME": "/home/u"}
    given = environment(ambient, effective(asked, (), revoked), ("OPENAI_API_KEY",)).env
    assert not given.keys() & {"GITHUB_TOKEN", "OPENAI_API_KEY"}


def hidden(tmp_path: Path, asked: tuple[str, ...] | None, *revoked: str) -> set[str]:
    """What the sandbox keeps from it of the folder it works in."""
    (tmp_path / "code").mkdir(exist_ok=True)
    found = Found(
        Manifest("demo", permissions=asked), tmp_path / "code", (), "user", 0, choices=Choices(revoked=revoked)
    )
    places = Places(tmp_path / "home", tmp_path / "logs", tmp_path / "data", tmp_path / "outputs")
    project = tmp_path / "project"
    made = policy(found, places, project)
    assert made
    closed = made.closed if made.readable == () else ()
    return {str(path.relative_to(project)) for path in (*made.hidden, *closed) if path.is_relative_to(project)}


def test_a_path_that_was_revoked_is_out_of_reach_however_much_else_was_given(tmp_path: Path) -> None:
    assert hidden(tmp_path, ("fs.read", "fs.write"), "fs.read:${project}/keys") == {"keys"}
    assert hidden(tmp_path, ("fs.read:${project}",), "fs.read:${project}/keys") == {"keys"}
    assert hidden(tmp_path, None, "fs.write:${project}/keys") == {"keys"}
    assert hidden(tmp_path, ("fs.read", "fs.write:${project}"), "fs.write:${project}/keys") == {"keys"}
    # What it could not write anyway need not be hidden from reading.
    assert hidden(tmp_path, ("fs.read",), "fs.write:${project}/keys") == set()
    assert hidden(tmp_path, (), "fs.read") == {"."}


@pytest.mark.parametrize("permission", POSSIBLE)
def test_every_permission_is_one_and_has_a_meaning_in_words(permission: str) -> None:
    assert problem(permission) == ""
    assert meaning(permission) != permission


@pytest.mark.parametrize(
    "permission",
    [
        *(
            "",
            "all",
            "fs",
            "fs.read:",
            "fs.read:etc",
            "fs.read:../x",
            "fs.read:/a/../b",
            "fs.read:${home}",
            "fs.read:~x",
        ),
        *("fs.write:/a\nb", "fs.write:/a\0", "net:", "net:a b", "net:http://x", "env:", "env:A-B", "env:1A", "exec:ls"),
        *("auth", "auth:", "auth:A B", "auth:../x", "conversation", "conversation:all", "ui:", "tools:bash", "FS.READ"),
    ],
)
def test_what_is_no_permission_is_refused_in_words(permission: str) -> None:
    assert problem(permission)


@patient
@given(st.text())
def test_whatever_the_text_it_is_a_permission_or_a_reason(text: str) -> None:
    if not problem(text):
        assert meaning(text)
        Permissions(full=False, granted=(text,)).allows(text)
