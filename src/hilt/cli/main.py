"""The entry point: the quickest answers first, then the verb, then exit codes.

Exit codes: 0 done; 1 the turn or the command failed; 2 usage; 130 interrupted. One of the four
places where exceptions become values.
"""

import sys

from hilt import __version__

VERBS = {
    "ext": "hilt.cli.ext",
    "login": "hilt.cli.login",
    "logout": "hilt.cli.login",
    "models": "hilt.cli.models",
    "sessions": "hilt.cli.sessions",
}
"""The first word of the command line, and the module whose `run(argv)` takes it from there."""


def main() -> int:
    argv = sys.argv[1:]
    if None in (sys.stdin, sys.stdout, sys.stderr):
        _fill_in_closed_streams()
    if argv in (["--version"], ["-v"], ["-V"]):
        # Nothing else is imported for this: shells and editors ask for it often.
        return _print(f"hilt {__version__}\n")
    try:
        if argv in (["--help"], ["-h"]):
            return _help()
        return _dispatch(argv)
    except KeyboardInterrupt:
        import os

        os._exit(130)  # a second Ctrl-C during the interpreter's own end would print a traceback
    except BrokenPipeError:
        _abandon_stdout()
        return 0
    except OSError as error:
        return _complain(error)
    except Exception as error:  # noqa: BLE001 - the outermost place: `explain` logs what it does not know
        from hilt.cli.explain import explain

        return explain(error)


def _print(text: str) -> int:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _abandon_stdout()
    except OSError as error:
        return _complain(error)
    return 0


def _complain(error: OSError) -> int:
    """The system refused something, a full disk under stdout above all: say so, and do not try it again on exit."""
    from hilt.frontends.terminal import clean

    _abandon_stdout()
    sys.stderr.write(clean(f"hilt: error: {error}\n"))
    return 1


def _help() -> int:
    from hilt.cli.flags import shared_parser

    return _print(shared_parser().format_help())


def _dispatch(argv: list[str]) -> int:
    from importlib import import_module

    verb = VERBS.get(argv[0]) if argv else None
    if verb is None:
        _leave_at_once_when_interrupted()
    module = import_module(verb or "hilt.cli.faces")
    code: int = module.run(argv)
    sys.stdout.flush()
    return code


def _leave_at_once_when_interrupted() -> None:
    """Until a face deals with it itself. An exception in the middle of an import may end up where Python can only
    print it; and there is nothing yet that would have to be put away."""
    import os
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))


def _fill_in_closed_streams() -> None:
    """Started with `<&-` or `>&-`: whatever is opened next would take the free number and be mistaken for it."""
    import os

    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            setattr(sys, name, os.fdopen(number, mode))


def _abandon_stdout() -> None:
    """The reader is gone: point stdout elsewhere, or Python complains about it while exiting."""
    import os

    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
