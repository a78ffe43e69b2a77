"""The flags that all faces share, parsed into a value. Imports argparse and nothing that costs more."""

import argparse
import os

from hilt.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing takes 4 ms, which --help can do without
    from typing import NoReturn

EPILOG = """\
verbs:
  hilt rpc                          drive the agent from another program, JSON lines on stdin and stdout
  hilt ext list|install|trust|…     get extensions and look after them
  hilt sessions list|show|…         look after what was said before
  hilt login PROVIDER, hilt logout  store or forget an API key
  hilt models [--json]              the models hilt knows, with windows and prices

examples:
  hilt -p "explain src/main.py"                 one question, the answer on stdout
  git diff | hilt -p                            the prompt from a pipe
  hilt -c -p "and now the tests"                go on with the last session of this directory
  hilt --json "list the files" | jq .type       every event as a line
  hilt --provider ollama --model qwen3 -p hi    a local model
  hilt -p 'run `make test`'                     without a key: the demo model, offline

exit codes: 0 done, 1 the turn failed, 2 usage, 130 interrupted
"""


class Formatter(argparse.RawDescriptionHelpFormatter):
    """As wide as the terminal, up to what reads well. Asking here spares argparse an import of 3 ms."""

    def __init__(self, prog: str) -> None:
        try:
            columns = int(os.environ.get("COLUMNS", "")) or 80
        except ValueError:
            try:
                columns = os.get_terminal_size(1).columns
            except OSError:
                columns = 80
        super().__init__(prog, max_help_position=32, width=max(40, min(columns, 110)) - 2)


class Parser(argparse.ArgumentParser):
    """Complains with a hint instead of a wall of usage."""

    def error(self, message: str) -> "NoReturn":
        raise UsageError(message, hint=self._hint(message))

    def _hint(self, message: str) -> str:
        if message.startswith("unrecognized arguments: -"):
            import difflib

            wrong = message.split()[2].partition("=")[0]
            near = difflib.get_close_matches(wrong, list(self._option_string_actions), n=1)
            if near:
                return f"did you mean {near[0]}? `{self.prog} --help` lists the flags"
        return f"`{self.prog} --help` lists the flags"


def shared_parser() -> Parser:
    parser = Parser(
        prog="hilt",
        usage="hilt [flags]   |   hilt -p [flags] [prompt…]\n"
        "       hilt --json [flags] [prompt…]   |   hilt rpc [flags]",
        description="A terminal coding agent, extensible to the hilt.",
        epilog=EPILOG,
        formatter_class=Formatter,
        allow_abbrev=False,
        add_help=False,
    )
    parser.add_argument("prompt", nargs="*", help="what to do; read from stdin when there is none and stdin is piped")

    faces = parser.add_argument_group("faces")
    faces.add_argument("-p", "--print", dest="print_", action="store_true", help="answer one prompt and exit")
    faces.add_argument("--json", action="store_true", help="the same, as one JSON event a line")
    faces.add_argument("--rpc", action="store_true", help="the same as `hilt rpc`")
    faces.add_argument("--list-models", action="store_true", help="the same as `hilt models`")
    faces.add_argument("-h", "--help", action="store_true", help="show this and exit")
    faces.add_argument("-v", "-V", "--version", action="store_true", help="show the version and exit")

    model = parser.add_argument_group("model")
    model.add_argument(
        "--provider", default="", metavar="NAME", help="anthropic, openai, google, kimi, ollama, demo or script"
    )
    model.add_argument("--model", default="", metavar="ID", help="any model id; `hilt models` lists the known ones")
    model.add_argument("--api-key", default="", metavar="KEY", help="for this run only; see `hilt login`")
    model.add_argument(
        "--base-url", default="", metavar="URL", help="another server that speaks the provider's protocol"
    )
    model.add_argument("--reasoning", choices=("low", "medium", "high"), default="", help="how much to think first")
    model.add_argument(
        "--script", default="", metavar="FILE", help="play the replies in this JSONL file instead of a model"
    )

    context = parser.add_argument_group("context")
    context.add_argument("--system-prompt", default="", metavar="TEXT", help="replace the built-in system prompt")
    context.add_argument(
        "--append-system-prompt", action="append", default=[], metavar="TEXT", help="add to it (repeatable)"
    )
    context.add_argument("--cwd", default="", metavar="DIR", help="work in this directory")
    context.add_argument("--with-skills", "--with-skill", action="store_true", help="load skills (the default)")
    context.add_argument("--no-skill", "--no-skills", action="store_true", help="load no skills")

    extensions = parser.add_argument_group("extensions")
    extensions.add_argument(
        "-e",
        "--ext",
        action="append",
        default=[],
        metavar="PATH",
        help="run the extension in this directory (repeatable)",
    )
    extensions.add_argument(
        "--no-ext", "--no-extensions", action="store_true", help="no extensions but those named by --ext"
    )
    extensions.add_argument(
        "--watch-ext", action="store_true", help="start an extension anew when its files change on disk"
    )
    extensions.add_argument(
        "--trust", action="store_true", help="run what this folder has of its own, for this run (see `hilt ext trust`)"
    )
    extensions.add_argument(
        "--strict-guards", action="store_true", help="refuse whatever a guard gives no verdict about"
    )
    extensions.add_argument(
        "--trace", default="", metavar="FILE", help="write what hilt and its extensions say to each other to this file"
    )

    session = parser.add_argument_group("session")
    session.add_argument(
        "-c", "--continue", dest="continue_", action="store_true", help="go on with the last session of this directory"
    )
    session.add_argument("-r", "--resume", action="store_true", help="pick a session of this directory from a list")
    session.add_argument("--session", default="", metavar="ID|PATH", help="open this session")
    session.add_argument("--no-session", action="store_true", help="keep nothing on disk")

    tools = parser.add_argument_group("tools and safety")
    tools.add_argument("--tools", default=None, metavar="A,B", help="only these built-in tools")
    tools.add_argument("--no-tools", action="store_true", help="no built-in tools")
    tools.add_argument(
        "--max-steps", type=_positive, default=None, metavar="N", help="model calls a prompt may take (50)"
    )
    tools.add_argument(
        "--permissions", choices=("ask", "accept-edits", "yolo"), default=None, help="when to ask before tools run"
    )
    tools.add_argument("--no-yolo", action="store_true", help="the same as --permissions ask")
    tools.add_argument("--jail", action="store_true", help="confine the file tools to the working directory")
    return parser


def parse(argv: list[str]) -> argparse.Namespace:
    # Split here, because argparse loses the `--` when flags and words may come in any order.
    end = argv.index("--") if "--" in argv else len(argv)
    options = shared_parser().parse_intermixed_args(argv[:end])
    options.prompt += argv[end + 1 :]
    chosen = [
        flag
        for flag, on in (
            ("-c", options.continue_),
            ("-r", options.resume),
            ("--session", options.session),
            ("--no-session", options.no_session),
        )
        if on
    ]
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join(chosen)} exclude each other", hint="give one of them")
    if options.tools is not None and options.no_tools:
        raise UsageError("--tools and --no-tools exclude each other", hint="give one of them")
    if options.session == "" and "--session" in argv[:end]:
        raise UsageError("--session needs an id or a path", hint="`hilt sessions list` shows the ids")
    if options.trace == "" and "--trace" in argv[:end]:
        raise UsageError("--trace needs a file", hint="it is made, or added to")
    if options.no_yolo:
        if options.permissions not in (None, "ask"):
            raise UsageError(f"--no-yolo contradicts --permissions {options.permissions}", hint="give one of them")
        options.permissions = "ask"
    return options


def _positive(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, not {text!r}")
    return number
