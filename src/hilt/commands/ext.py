"""What `/ext` does: tell of the extensions and how they are, switch one on or off, start it anew, show its log."""

import asyncio
from pathlib import Path

from hilt.errors import HiltError, UsageError
from hilt.model.extensions import ExtensionStatus, no_such_extension
from hilt.model.ports import Extensions

USAGE = "[enable | disable | reload | log <name>]"

_LINES = 50
_LARGEST = 64 * 1024 * 1024
"""Bytes of a log, which is put away long before it has so many."""
_END = 256 * 1024
"""Bytes of it that are looked through for its last lines."""


async def about_extensions(extensions: Extensions, args: str) -> str:
    verb, _, name = args.partition(" ")
    name = name.strip()
    match verb:
        case "":
            lines = [line for status in extensions.statuses() for line in _lines(status)]
            return "\n".join(lines) or "no extensions; `--ext DIR` runs one"
        case "enable" if name:
            return await extensions.enable(name)
        case "disable" if name:
            return await extensions.disable(name)
        case "reload" if name:
            return str(await extensions.reload(name))
        case "log" if name:
            return await asyncio.to_thread(_log, extensions.statuses(), name)
        case _:
            raise UsageError("/ext takes nothing, or enable, disable, reload or log and the name of an extension")


def _lines(status: ExtensionStatus) -> list[str]:
    offers = [*status.tools, *(f"/{name}" for name in status.commands), *(f"guards {name}" for name in status.guards)]
    offers += status.also
    name = f"{status.name} {status.version}".rstrip()  # not all have a version
    lines = [f"{name}: {status.state}" + (f" ({status.reason})" if status.reason else "")]
    lines += [f"  offers {', '.join(offers)}"] if offers else []
    counted = {
        "restarts": status.restarts,
        "events lost": status.events_lost,
        "unusable lines": status.mistakes,
        "verdicts missed": status.unchecked,
        "tokens used": status.tokens_used,
    }
    figures = [f"{what}: {count}" for what, count in counted.items() if count]
    if status.prompt_tokens:
        figures.insert(0, f"about {status.prompt_tokens:,} tokens in every call of the model")
    if status.calls:
        took = f"{_shown(status.mean_ms)} on average, {_shown(status.worst_ms)} at most"
        figures.insert(0, f"calls: {status.calls} ({took}, waited for {_shown(status.busy_ms)} in all)")
    lines += [f"  {', '.join(figures)}"] if figures else []
    lines += [f"  last error: {status.last_error}"] if status.last_error else []
    return lines


def _shown(ms: float) -> str:
    return f"{ms / 1000:.1f} s" if ms >= 1000 else f"{ms:.3g} ms"


def _log(statuses: tuple[ExtensionStatus, ...], name: str) -> str:
    """Its last lines. Whoever shows them makes them harmless for a terminal, as all that is a stranger's."""
    status = next((one for one in statuses if one.name == name), None)
    if status is None:
        raise no_such_extension(name, [one.name for one in statuses])
    path = Path(status.log)
    # What was put away when the log was begun anew counts too, or there would be few lines just after that.
    files = (Path(f"{path}.1"), path) if status.log else ()
    data = b"".join(_end(one) for one in files if one.is_file())
    lines = data.decode("utf-8", "replace").splitlines()[-_LINES:]
    if not lines:
        raise HiltError(f"there is nothing in the log of {name}", hint="it has not run yet, or has said nothing")
    return "\n".join((str(path), *lines))


def _end(path: Path) -> bytes:
    from hilt.packages.members import read_file  # most sessions have no extensions, and do without what is about them

    data = read_file(path, _LARGEST, "a log")
    return data if len(data) <= _END else data[-_END:].partition(b"\n")[2]
