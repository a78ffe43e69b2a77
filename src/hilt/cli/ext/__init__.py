"""`hilt ext`: get extensions, look after them, and decide what they may do.

Owns which function does what, and how its answer is shown; `words` has what can be said. Each verb is a function
that does it and returns what there is to say.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from hilt.cli.ext.words import read

if TYPE_CHECKING:
    from hilt.cli.ext.site import Told

_VERBS = {
    "new": "creating:new",
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
    "call": "calling:call",
    "run": "calling:run",
    "bench": "benching:bench",
    "dev": "developing:develop",
    "test": "testing:test",
    "conformance": "conforming:check",
    "trace": "tracing:trace",
    "replay": "replaying:replay_trace",
    "why": "why:explain",
    "bisect": "bisecting:bisect_enabled",
    "logs": "logs:show",
    "validate": "checking:validate",
    "doctor": "checking:doctor",
}
"""The module and the function of each."""


def run(argv: list[str]) -> int:
    options = read(argv[1:])
    if options.verb is None:
        return 0
    # 50 ms, of which whoever wants help needs none.
    from hilt.cli.ext.site import Site
    from hilt.frontends.encode import json_line
    from hilt.frontends.terminal import clean, json_for_stdout

    module, _, function = _VERBS[options.verb].partition(":")
    told: Told = getattr(import_module(f"hilt.cli.ext.{module}"), function)(Site.here(), options)
    if options.json:
        sys.stdout.write(json_for_stdout(json_line(told.value)).decode() + "\n")
    elif told.text:
        sys.stdout.write(clean(told.text).rstrip("\n") + "\n")
    return told.code
