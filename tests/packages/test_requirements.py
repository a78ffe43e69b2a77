import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet

from hilt.packages.scripts.requirements import problem, python_problem, satisfied
from support.properties import patient

VERSIONS = st.lists(st.integers(0, 13), min_size=1, max_size=3).map(lambda numbers: ".".join(map(str, numbers)))


@pytest.mark.parametrize(
    "requirement",
    [
        "rich",
        "rich>=14",
        "rich >= 14, <15",
        "zope.interface==5.*",
        "requests[socks,use_chardet]~=2.32",
        "requests [ socks ]",
        "tomli>=2; python_version < '3.11'",
        "a!=1.0,==1!2.0+local.1 ; sys_platform == \"linux\" and (extra == 'x')",
    ],
)
def test_a_package_of_the_index_may_be_required(requirement: str) -> None:
    assert problem(requirement) == ""
    assert Requirement(requirement).url is None


@pytest.mark.parametrize(
    ("requirement", "why"),
    [
        ("", "not the name of a package"),
        ("-r/etc/passwd", "option"),
        ("--index-url=https://evil.example", "option"),
        ("-e.", "option"),
        ("rich --index-url=https://evil.example", "place"),
        ("rich --pre", "not the name of a package"),
        ("rich\n--pre", "not the name of a package"),
        ("rich\n", "not the name of a package"),
        ("rich==1\r\n--pre", "not the name of a package"),
        ("rich\0", "not the name of a package"),
        ("rich @ https://evil.example/rich.whl", "place"),
        ("rich@file:///etc", "place"),
        ("https://evil.example/rich.whl", "place"),
        ("git+https://evil.example/rich", "place"),
        ("file:rich", "place"),
        ("./rich", "place"),
        ("/rich", "place"),
        ("~/rich", "place"),
        ("..", "place"),
        ("a/b", "not the name of a package"),
        ("ríčh", "not the name of a package"),
        ("rich>=", "not the name of a package"),
        ("rich; a @ b://c", "not the name of a package"),
        ("$(id)", "not the name of a package"),
        ("a" * 501, "longer than 500"),
    ],
)
def test_what_is_not_just_a_package_of_the_index_is_refused(requirement: str, why: str) -> None:
    assert why in problem(requirement)


@patient
@given(st.text(alphabet="ab1-_.[]>=<~!,;:@/ '\"\n\t#$\\", max_size=30))
def test_nothing_passes_that_could_be_taken_for_an_option_a_path_or_an_address(text: str) -> None:
    if problem(text):
        return
    assert re.match(r"[A-Za-z0-9]", text) and not set(text) & set("@/\\\n\t:#$")
    try:
        assert Requirement(text).url is None
    except InvalidRequirement:
        pass  # the rest is for whoever installs it to refuse


@patient
@given(
    st.lists(st.tuples(st.sampled_from(["~=", "==", "!=", "<=", ">=", "<", ">"]), VERSIONS, st.booleans()), max_size=3),
    st.tuples(st.just(3), st.integers(0, 13), st.integers(0, 13)),
)
def test_a_range_of_versions_means_what_it_means_to_others(
    clauses: list[tuple[str, str, bool]], version: tuple[int, int, int]
) -> None:
    requires = ",".join(f"{operator} {text}{'.*' if star else ''}" for operator, text, star in clauses)
    expected = ".".join(map(str, version))
    if not python_problem(requires):
        assert satisfied(requires, version) == SpecifierSet(requires).contains(expected)


@pytest.mark.parametrize(
    "requires", ["3.11", ">=3.x", ">=3.11; x", "~=3", ">=3.*", ">=3 <4", ",>=3", "===3.11", ">=" + "9" * 9]
)
def test_what_is_no_range_of_versions_is_refused(requires: str) -> None:
    assert python_problem(requires)


@pytest.mark.parametrize("requires", ["", " ", ">=3.11", ">=3.11,", " >= 3.11 , < 4 ", "==3.*", "~=3.11"])
def test_ranges_that_people_write_are_understood(requires: str) -> None:
    assert python_problem(requires) == ""
    assert satisfied(requires, (3, 12, 1))
