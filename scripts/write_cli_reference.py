"""Write the tables of flags in docs/reference/cli.md from the parsers themselves.

    python scripts/write_cli_reference.py            # rewrites the file
    python scripts/write_cli_reference.py --check    # exit code 1 when it is out of date

A table stands between `<!-- flags: NAME -->` and `<!-- end -->`; the words around it are written by hand.
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import NoReturn
from unittest import mock

from hilt.cli.flags import Parser, shared_parser
from hilt.cli.main import VERBS

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "cli.md"
_TABLE = re.compile(r"(<!-- flags: (?P<name>.*?) -->\n).*?(<!-- end -->)", re.DOTALL)


class Caught(BaseException):
    """Carries a parser out of the function that made it; not an Exception, so that nobody explains it away."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser


def tables() -> dict[str, str]:
    """Every table by its name: `faces`, `model`… for the shared flags, `sessions list`… for the verbs."""
    shared = {
        group.title: rows(group._group_actions)
        for group in shared_parser()._action_groups
        if group.title and group._group_actions
    }
    verbs = {name: rows(parser._actions) for name, parser in verb_parsers()}
    return {name: table(lines) for name, lines in (shared | verbs).items()}


def verb_parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for verb, module in VERBS.items():
        parser = _parser_of(import_module(module).run, [verb])
        below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
        if not below:
            yield verb, parser
        for action in below:
            yield from ((f"{verb} {name}", child) for name, child in action.choices.items())


def _parser_of(run: Callable[[list[str]], int], argv: list[str]) -> argparse.ArgumentParser:
    def catch(parser: Parser, *_: object) -> NoReturn:
        raise Caught(parser)

    try:
        with mock.patch.object(Parser, "parse_args", catch):
            run(argv)
    except Caught as caught:
        return caught.parser
    raise AssertionError(f"{argv} parsed nothing")


def rows(actions: list[argparse.Action]) -> list[tuple[str, str]]:
    shown = [action for action in actions if not isinstance(action, argparse._HelpAction)]
    return [(_spelling(action), action.help or "") for action in shown]


def _spelling(action: argparse.Action) -> str:
    if not action.option_strings:
        name = str(action.metavar or action.dest)
        return f"[{name}]" if action.nargs in ("?", "*") else name
    value = "" if action.nargs == 0 else f" {_value(action)}"
    return ", ".join(action.option_strings) + value


def _value(action: argparse.Action) -> str:
    if action.choices:
        return "|".join(map(str, action.choices))
    return str(action.metavar or action.dest.upper())


def table(lines: list[tuple[str, str]]) -> str:
    body = [f"| `{_cell(flag)}` | {_cell(meaning)} |" for flag, meaning in lines]
    return "\n".join(["| | |", "|---|---|", *body]) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def rewritten(text: str) -> str:
    made = tables()
    asked = {found["name"] for found in _TABLE.finditer(text)}
    if asked != set(made):
        missing, unknown = sorted(set(made) - asked), sorted(asked - set(made))
        raise SystemExit(f"{REFERENCE}: no place for {missing}, and nothing to put in {unknown}")
    return _TABLE.sub(lambda found: f"{found[1]}{made[found['name']]}{found[3]}", text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only say whether the file is up to date")
    options = parser.parse_args()
    before = REFERENCE.read_text(encoding="utf-8")
    after = rewritten(before)
    if options.check and before != after:
        sys.exit(f"{REFERENCE} is out of date: run python scripts/write_cli_reference.py")
    if before != after:
        REFERENCE.write_text(after, encoding="utf-8")
        print(f"{REFERENCE} rewritten")


if __name__ == "__main__":
    main()
