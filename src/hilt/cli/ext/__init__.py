"""`hilt ext`: get extensions, look after them, and decide what they may do.

Owns the words of the command line. Each verb is a function that does it and returns what there is to say.
"""

import sys
from importlib import import_module

from hilt.cli.ext.site import Site, Told
from hilt.cli.flags import Parser
from hilt.frontends.encode import json_line
from hilt.frontends.terminal import clean, json_for_stdout
from hilt.packages.permissions import KNOWN

_VERBS = {
    "list": "listing:show_all",
    "info": "listing:show_one",
    "install": "installing:install",
    "update": "installing:update",
    "remove": "installing:remove",
    "link": "installing:link",
    "import": "importing:bring_in",
    "enable": "choosing:enable",
    "disable": "choosing:disable",
    "grant": "choosing:grant",
    "revoke": "choosing:revoke",
    "trust": "trusting:trust",
    "untrust": "trusting:untrust",
    "logs": "logs:show",
    "validate": "checking:validate",
    "doctor": "checking:doctor",
}
"""The module and the function of each."""


_ARGUMENTS = {
    "name": "as `hilt ext list` shows it",
    "path": "its directory, or its file",
    "permission": f"one of {KNOWN}",
}


def run(argv: list[str]) -> int:
    parser = _parser()
    options = parser.parse_args(argv[1:])
    if options.verb is None:
        sys.stdout.write(parser.format_help())
        return 0
    module, _, function = _VERBS[options.verb].partition(":")
    told: Told = getattr(import_module(f"hilt.cli.ext.{module}"), function)(Site.here(), options)
    if options.json:
        sys.stdout.write(json_for_stdout(json_line(told.value)).decode() + "\n")
    elif told.text:
        sys.stdout.write(clean(told.text).rstrip("\n") + "\n")
    return told.code


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

    def asking(sub: Parser) -> None:
        sub.add_argument("-y", "--yes", action="store_true", help="do not ask: show it and go on")

    listing = verb("list", "list extensions: state, version, where they come from, what they offer")
    listing.add_argument("--live", action="store_true", help="start each in turn and report")
    verb("info", "tell all that is known of one", "name")
    installing = verb("install", "install one: a directory, a git URL with or without @REF, an archive or one file")
    installing.add_argument(
        "source", metavar="PATH|URL[@REF]", help="such as ., ./tool.py, tool.tar.gz or https://HOST/NAME.git@v1.2"
    )
    installing.add_argument("--allow-file", action="store_true", help="take file:// URLs")
    installing.add_argument("--sandbox", choices=("off", "standard", "strict"), help="how to confine it in any case")
    asking(installing)
    updating = verb("update", "fetch one anew from where it came; shows what changes first")
    updating.add_argument("name", nargs="?", default="", help=_ARGUMENTS["name"])
    updating.add_argument("--all", action="store_true", help="all that hilt installed")
    asking(updating)
    asking(verb("remove", "delete one that hilt installed; what it saved elsewhere stays", "name"))
    linking = verb("link", "use one where it lies, to work on it in place")
    linking.add_argument("path", help="its directory")
    asking(linking)
    importing = verb("import", "copy what you have installed for another agent")
    importing.add_argument("--from", dest="origin", choices=("zot", "piglet"), required=True, help="whose")
    asking(importing)
    verb("enable", "let one run that was switched off", "name")
    verb("disable", "keep one from running", "name")
    verb("grant", "allow one something, such as env:GITHUB_TOKEN or net", "name", "permission")
    verb("revoke", "forbid one something", "name", "permission")
    asking(verb("trust", "let the extensions of this folder run, as they are now"))
    verb("untrust", "do not let the extensions of this folder run")
    logs = verb("logs", "show what one wrote to stderr, and what hilt remarked", "name")
    logs.add_argument("-f", "--follow", action="store_true", help="go on as more comes")
    logs.add_argument("-n", "--lines", type=int, default=100, metavar="N", help="the last N lines (100); 0 for all")
    verb("validate", "check an extension without starting it", "path")
    doctor = verb("doctor", "check extensions, starting each in turn, and say what to do")
    doctor.add_argument("name", nargs="?", default="", help="only this one")
    return parser
