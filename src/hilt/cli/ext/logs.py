"""`hilt ext logs`: what an extension complained about or printed, made harmless for the terminal."""

import argparse
import os
import select
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from hilt.cli.ext.site import Site, Told
from hilt.errors import UsageError
from hilt.frontends.encode import json_line
from hilt.frontends.terminal import clean, json_for_stdout
from hilt.packages.discovery import PROJECT, log_name
from hilt.packages.manifest import is_name
from hilt.packages.members import read_file

_LARGEST = 256 * 1024 * 1024
_INTERVAL = 0.2
_READ = 1024 * 1024


def show(site: Site, options: argparse.Namespace) -> Told:
    if not is_name(options.name.removeprefix(PROJECT)):
        raise site.no_such(options.name)
    path = site.home.logs / log_name(options.name)
    if not path.is_file():
        raise UsageError(
            f"there is no log of {options.name}: {path}", hint="it has not run yet; `hilt ext list` shows names"
        )
    if options.follow:
        _follow(path, options)
    lines = [*_older(path), *_split(read_file(path, _LARGEST, "a log").removesuffix(b"\n"))]
    kept = _last(lines, options.lines)
    return Told({"name": options.name, "path": str(path), "lines": kept}, "\n".join(kept) or "(empty)")


def _follow(path: Path, options: argparse.Namespace) -> NoReturn:
    """Until interrupted. The file that the first lines come from is the one that is followed, whatever its name is."""
    older = _older(path)
    parts = pieces(path)
    _write(_last([*older, *next(parts)], options.lines), as_json=options.json)
    for piece in parts:
        _write(piece, as_json=options.json)
    raise AssertionError("a log has no end")


def _last(lines: list[str], count: int) -> list[str]:
    return lines[-count:] if count > 0 else lines


def _older(path: Path) -> list[str]:
    """What was put away when the log was begun anew, so that the last lines are not few just after that."""
    older = path.with_name(f"{path.name}.1")
    return _split(read_file(older, _LARGEST, "a log").removesuffix(b"\n")) if older.is_file() else []


def _split(data: bytes) -> list[str]:
    return data.decode("utf-8", "replace").split("\n") if data else []


def pieces(path: Path) -> Iterator[list[str]]:
    """Whole lines: all that are there, then more as they come; also when the log is begun anew."""
    file = path.open("rb")
    whole, _, rest = file.read(_LARGEST).rpartition(b"\n")
    yield _split(whole)
    while True:
        if data := file.read(_READ):
            whole, newline, rest = (rest + data).rpartition(b"\n")
            if newline:
                yield whole.decode("utf-8", "replace").split("\n")
        elif not _is_at(path, file.fileno()):
            # Only once all of it was read is it left for the one that has taken its place.
            file.close()
            file, rest = path.open("rb"), b""
        elif os.fstat(file.fileno()).st_size < file.tell():
            file.seek(0)  # somebody has emptied it
            rest = b""
        else:
            _wait()


def _wait() -> None:
    """For more to come. Whoever reads this may be gone, which a write would only find out with the next line."""
    reader = select.poll()
    reader.register(sys.stdout.fileno(), 0)
    if any(event & select.POLLERR for _, event in reader.poll(0)):
        raise BrokenPipeError
    time.sleep(_INTERVAL)


def _is_at(path: Path, number: int) -> bool:
    """Whether the path leads to this file, or to none for the moment."""
    try:
        return os.path.samestat(path.stat(), os.fstat(number))
    except FileNotFoundError:
        return True


def _write(lines: list[str], *, as_json: bool) -> None:
    for line in lines:
        shown = json_for_stdout(json_line({"line": line})).decode() if as_json else clean(line)
        sys.stdout.write(f"{shown}\n")
    sys.stdout.flush()
