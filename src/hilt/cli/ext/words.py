"""The words of `hilt ext`: every verb with what it takes, one function for each family of them.

What a verb does is in a module of its own; nothing of that is imported for `--help`.
"""

from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable
from typing import TypeAlias

from hilt.cli.flags import Parser
from hilt.packages.permissions import KNOWN

_BEHIND = {"run": "words", "test": "fixtures", "trace": "prompt", "bisect": "command"}
"""What the words behind `--` are, for verbs that take some."""

_ARGUMENTS = {
    "name": "as `hilt ext list` shows it",
    "path": "its directory, or its file",
    "permission": f"one of {KNOWN}",
}

Verb: TypeAlias = Callable[..., Parser]
"""Adds one: its name, what it does, and the names of what it takes in any case."""


def read(words: list[str]) -> Namespace:
    """What was asked for. Ends the program when that is help, or nothing that there is."""
    parser = _parser()
    words, behind = _behind_cut_off(words)
    # Last, or the parser takes what may stand behind it, and be left out, for left out.
    options = parser.parse_args(sorted(words, key="--json".__eq__))
    if behind:
        getattr(options, _BEHIND[options.verb]).extend(behind)
    if options.verb is None:
        parser.print_help()
    return options


def _behind_cut_off(words: list[str]) -> tuple[list[str], list[str]]:
    """What stands behind `--`: the parser has no place for it when a flag stands in between."""
    if not words or words[0] not in _BEHIND or "--" not in words:
        return words, []
    at = words.index("--")
    return words[:at], words[at + 1 :]


def _parser() -> Parser:
    parser = Parser(
        prog="hilt ext",
        description="Look after extensions. All verbs take --json.",
        epilog="exit codes: 0 done, 1 something is wrong with an extension or you said no, 2 usage, 130 interrupted",
        allow_abbrev=False,
    )
    verbs = parser.add_subparsers(dest="verb", metavar="verb", parser_class=Parser)

    def verb(name: str, help_: str, *arguments: str) -> Parser:
        about = help_[0].upper() + help_[1:] + "."
        sub: Parser = verbs.add_parser(name, help=help_, description=about, allow_abbrev=False)
        for argument in arguments:
            sub.add_argument(argument, help=_ARGUMENTS[argument])
        sub.add_argument("--json", action="store_true", help="print JSON")
        return sub

    for add in (_add_getting, _add_deciding, _add_trials, _add_tests, _add_inquiries, _add_checks):
        add(verb)
    return parser


def _asking(sub: Parser) -> None:
    sub.add_argument("-y", "--yes", action="store_true", help="do not ask: show it and go on")


def _leaving(sub: Parser) -> None:
    state = "a file or folder of it that it may change: it is not pinned, and an update leaves it (repeatable)"
    sub.add_argument("--state", action="append", default=[], metavar="PATH", help=state)


def _add_getting(verb: Verb) -> None:
    """Those by which extensions come, go and are listed."""
    creating = verb("new", "make a working extension to start from, in a directory of its name")
    creating.add_argument("name", help="small letters, digits, - and _")
    creating.add_argument("--lang", choices=("python", "typescript", "go", "sh"), default="python", help="(python)")
    kinds = ("tool", "command", "guard", "panel", "provider")
    creating.add_argument("--kind", choices=kinds, default="tool", help="what it offers first (tool)")
    listing = verb("list", "list extensions: state, version, where they come from, what they offer")
    listing.add_argument("--live", action="store_true", help="start each in turn and report")
    verb("info", "tell all that is known of one", "name")
    installing = verb("install", "install one: a directory, a git URL with or without @REF, an archive or one file")
    installing.add_argument(
        "source", metavar="PATH|URL[@REF]", help="such as ., ./tool.py, tool.tar.gz or https://HOST/NAME.git@v1.2"
    )
    installing.add_argument("--allow-file", action="store_true", help="take file:// URLs")
    installing.add_argument("--sandbox", choices=("off", "standard", "strict"), help="how to confine it in any case")
    _leaving(installing)
    _asking(installing)
    updating = verb("update", "fetch one anew from where it came; shows what changes first")
    updating.add_argument("name", nargs="?", default="", help=_ARGUMENTS["name"])
    updating.add_argument("--all", action="store_true", help="all that hilt installed")
    _leaving(updating)
    _asking(updating)
    _asking(verb("remove", "delete one that hilt installed; what it saved elsewhere stays", "name"))
    linking = verb("link", "use one where it lies, to work on it in place")
    linking.add_argument("path", help="its directory")
    _asking(linking)
    importing = verb("import", "copy what you have installed for another agent")
    importing.add_argument("--from", dest="origin", choices=("zot", "piglet"), required=True, help="whose")
    _asking(importing)


def _add_deciding(verb: Verb) -> None:
    """Those by which the user decides what may run, and what it may do."""
    verb("enable", "let one run that was switched off", "name")
    verb("disable", "keep one from running", "name")
    verb("grant", "allow one something, such as env:GITHUB_TOKEN or net", "name", "permission")
    verb("revoke", "forbid one something", "name", "permission")
    _asking(verb("trust", "let the extensions of this folder run, as they are now"))
    verb("untrust", "do not let the extensions of this folder run")


def _add_trials(verb: Verb) -> None:
    """Those that try one extension by itself."""
    target = "a path, or the name of one that is installed"

    def timing(sub: Parser) -> None:
        sub.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="cancel it after that long")

    calling = verb("call", "call one tool of an extension, without a model")
    calling.add_argument("target", metavar="PATH|NAME", help=target)
    calling.add_argument("tool", metavar="TOOL", help="its name")
    given = "a JSON object; @FILE reads it from there, - from stdin ({})"
    calling.add_argument("arguments", nargs="?", default="{}", metavar="JSON", help=given)
    timing(calling)
    running = verb("run", "run one slash command of an extension, without a model")
    running.add_argument("target", metavar="PATH|NAME", help=target)
    running.add_argument("command", metavar="/COMMAND", help="with or without the slash")
    running.add_argument("words", nargs="*", metavar="ARGS", help="what follows it")
    timing(running)
    benching = verb("bench", "measure an extension: round trip, start, memory; beside a bare one in Python")
    benching.add_argument("target", metavar="PATH|NAME", help=target)
    benching.add_argument("--tool", default="", help="call this one; without it, one that it does not have")
    benching.add_argument("--args", default="{}", metavar="JSON", help="its arguments; @FILE or - as for call ({})")
    benching.add_argument(
        "--calls", type=_count, default=500, metavar="N", help="so many, if they take no longer than 25 s (500)"
    )
    developing = verb(
        "dev", "run the agent with an extension while you change it: reloads on save, shows frames and log"
    )
    developing.add_argument("target", metavar="PATH|NAME", help=target)
    developing.add_argument("--provider", choices=("demo", "script"), default="", help="the model that answers (demo)")
    developing.add_argument("--script", default="", metavar="FILE", help="play the replies in this JSONL file")
    developing.add_argument("--with-others", action="store_true", help="with what is installed as well")
    developing.add_argument("--quiet-frames", action="store_true", help="do not show frames")


def _add_tests(verb: Verb) -> None:
    """Those that play the other side of the wire."""
    testing = verb("test", "play an extension's fixtures to it, and run the tests in its own language", "path")
    files = "only these; without any, all of PATH/tests and PATH/fixtures, and the tests of its language"
    testing.add_argument("fixtures", nargs="*", metavar="FIXTURE", help=files)
    testing.add_argument("--junit", default="", metavar="FILE", help="also write the results as JUnit XML")
    recorded = "write a fixture of a run: what is behind -- is asked of the demo model, with this extension alone"
    testing.add_argument("--record", default="", metavar="FILE", help=recorded)
    testing.add_argument(
        "--script", default="", metavar="FILE", help="with --record: play the replies in this file instead of a model"
    )
    traced = "with --record: of a trace, as `hilt --trace FILE` writes it"
    testing.add_argument("--from", dest="origin", default="", metavar="TRACE", help=traced)
    conforming = verb("conformance", "check whether an extension, or another host, keeps to the protocol")
    conforming.add_argument("path", nargs="?", default="", metavar="PATH", help=_ARGUMENTS["path"])
    called = "call this tool with these arguments, too (repeatable); without it, no tool of its own is called"
    conforming.add_argument("--call", action="append", default=[], metavar="TOOL=JSON", help=called)
    hosted = "check a host: a command that speaks `hilt rpc`, with {ext} and {script} in it"
    conforming.add_argument("--host", default="", metavar="CMD", help=hosted)
    lacking = "with --host: leave out what needs this (repeatable)"
    conforming.add_argument("--without", action="append", default=[], metavar="NEED", help=lacking)
    chosen = "with --host: only conversations whose name has this in it (repeatable)"
    conforming.add_argument("--only", action="append", default=[], metavar="TEXT", help=chosen)


def _add_inquiries(verb: Verb) -> None:
    """Those that find out what went on between hilt and its extensions."""
    tracing = verb("trace", "run one prompt with an extension alone and show all that it and hilt say to each other")
    tracing.add_argument("target", metavar="PATH|NAME", help="a path, or the name of one that is installed")
    prompt = 'what to ask the demo model, or a slash command ("hi"); behind -- if flags come before it'
    tracing.add_argument("prompt", nargs="*", metavar="PROMPT", help=prompt)
    tracing.add_argument(
        "--script", default="", metavar="FILE", help="play the replies in this file instead of a model"
    )
    tracing.add_argument(
        "--file", default="", metavar="FILE", help="show what this trace has of it; see `hilt --trace`"
    )
    tracing.add_argument("-f", "--follow", action="store_true", help="with --file: go on as more comes")
    replaying = verb("replay", "play hilt's side of a trace to an extension again and show what it does differently")
    replaying.add_argument("file", metavar="FILE", help="a trace, as `hilt --trace FILE` writes it")
    replaying.add_argument("--against", required=True, metavar="PATH", help="the extension's directory, or its file")
    replaying.add_argument("--extension", default="", metavar="NAME", help="whose part of the trace (that of its name)")
    replaying.add_argument("--process", type=int, default=0, metavar="PID", help="which of its processes (the longest)")
    replaying.add_argument("--timeout", type=_seconds, default=5.0, metavar="SECONDS", help="for each answer (5)")
    ignore = "a member of what it says that may differ, such as version (repeatable)"
    replaying.add_argument("--ignore", action="append", default=[], metavar="MEMBER", help=ignore)
    why = verb("why", "tell of a tool call who had a say in it, what each changed and how long each took")
    why.add_argument(
        "call", nargs="?", default="", metavar="CALL_ID", help="or its beginning; without it, list the last"
    )
    why.add_argument(
        "--session", default="", metavar="ID|PATH", help="where it was made (the newest of this directory)"
    )
    bisecting = verb("bisect", "find the extension that causes a problem: run with half of them, and again")
    command = "behind --: exits with 0 when all is well, 125 when that cannot be told; without it, you are asked"
    bisecting.add_argument("command", nargs="*", metavar="COMMAND", help=command)


def _add_checks(verb: Verb) -> None:
    """Those that tell how extensions are."""
    logs = verb("logs", "show what one wrote to stderr, and what hilt remarked", "name")
    logs.add_argument("-f", "--follow", action="store_true", help="go on as more comes")
    logs.add_argument("-n", "--lines", type=int, default=100, metavar="N", help="the last N lines (100); 0 for all")
    verb("validate", "check an extension without starting it", "path")
    doctor = verb("doctor", "check extensions, starting each in turn, and say what to do")
    doctor.add_argument("name", nargs="?", default="", help="only this one")


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 1_000_000:
        raise ArgumentTypeError(f'"{text}" is no number from 1 to 1,000,000')
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 0 < seconds < float("inf"):
        raise ArgumentTypeError(f'"{text}" is no number of seconds above 0')
    return seconds
