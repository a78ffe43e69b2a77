"""What a script may ask of Python: packages by name and version, and the version of Python itself.

Owns the grammar, which is that of the package index less everything that is not a name: no URL, no path, no option can
be written in it, so a requirement may stand on a command line. Who installs them is `environments`.
"""

import re

LONGEST = 500
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_EXTRAS = rf"\[ *(?:{_NAME}(?: *, *{_NAME})*)? *\]"
_CLAUSE = r"(?:~=|===|==|!=|<=|>=|<|>) *[A-Za-z0-9._*+!-]+"
_MARKER = r"""; *[A-Za-z0-9_.,'"()<>=!~+* -]+"""
_REQUIREMENT = re.compile(rf"{_NAME} *(?:{_EXTRAS})? *(?:{_CLAUSE}(?: *, *{_CLAUSE})*)? *(?:{_MARKER})?", re.ASCII)
_ELSEWHERE = re.compile(r"@|://|^(?:git|file|https?|ssh):|^[./~\\]", re.ASCII)
_PYTHON = re.compile(r" *(~=|==|!=|<=|>=|<|>) *([0-9]{1,4}(?:\.[0-9]{1,4}){0,3})(\.\*)? *", re.ASCII)

Version = tuple[int, ...]


def problem(requirement: str) -> str:
    """Why it is no requirement that may be installed; empty if it is one."""
    if len(requirement) > LONGEST:
        return f"is longer than {LONGEST} letters"
    if requirement.startswith("-"):
        return "begins like an option"
    if _ELSEWHERE.search(requirement.partition(";")[0]):
        return "names a place, and only packages of the package index are installed"
    if not _REQUIREMENT.fullmatch(requirement):
        return "is not the name of a package, with versions if need be, such as rich>=14"
    return ""


def python_problem(requires: str) -> str:
    """Why it says nothing about versions of Python; empty if it does."""
    for clause in _clauses(requires):
        match = _PYTHON.fullmatch(clause)
        if not match:
            return "is not a range of versions, such as >=3.11"
        operator, version, star = match.groups()
        if star and operator not in ("==", "!="):
            return f"has .* after {operator}, where it means nothing"
        if operator == "~=" and "." not in version:
            return "has ~= with one number, where it means nothing"
    return ""


def satisfied(requires: str, version: Version) -> bool:
    """Whether this version of Python will do. Only for what has no `python_problem`."""
    return all(_satisfied(clause, version) for clause in _clauses(requires))


def _clauses(requires: str) -> list[str]:
    clauses = requires.split(",")
    if len(clauses) > 1 and not clauses[-1].strip():
        clauses.pop()  # one comma too many is common, and is taken elsewhere
    return [clause for clause in clauses if clause.strip() or len(clauses) > 1]


def _satisfied(clause: str, version: Version) -> bool:
    match = _PYTHON.fullmatch(clause)
    assert match, "asked about a range that has a problem"
    operator, text, star = match.groups()
    wanted = tuple(int(number) for number in text.split("."))
    begins = _padded(version, len(wanted))[: len(wanted)] == wanted
    if star:
        return begins == (operator == "==")
    ours, theirs = _padded(version, 4), _padded(wanted, 4)
    match operator:
        case "==":
            return ours == theirs
        case "!=":
            return ours != theirs
        case "<=":
            return ours <= theirs
        case ">=":
            return ours >= theirs
        case "<":
            return ours < theirs
        case ">":
            return ours > theirs
    kept = len(wanted) - 1  # ~=3.11.2 is any later 3.11
    return ours >= theirs and ours[:kept] == theirs[:kept]


def _padded(version: Version, length: int) -> Version:
    return version + (0,) * (length - len(version))
