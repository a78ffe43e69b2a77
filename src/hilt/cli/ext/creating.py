"""`hilt ext new`: a working extension to start from."""

import argparse
import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

from hilt.authoring.scaffold import Language, Made, scaffold
from hilt.cli.ext.site import Site, Told

_NEEDED: dict[Language, tuple[str, str]] = {
    "typescript": ("node", "Node.js 20 or newer, or change `exec` to bun or deno"),
    "go": ("go", "Go 1.22 or newer"),
    "sh": ("jq", "jq, with which it reads and writes JSON"),
}


def new(site: Site, options: argparse.Namespace) -> Told:
    made = scaffold(options.name, options.lang, options.kind, site.cwd)
    missing = list(_missing(options.lang, site.path))
    place = os.path.relpath(made.directory, site.cwd)
    value = {
        "name": options.name,
        "directory": str(made.directory),
        "files": list(made.files),
        "missing": missing,
        "next": _next(place, made),
    }
    return Told(value, _told(place, made, missing))


def _missing(language: Language, path: str) -> Iterator[str]:
    if language in _NEEDED:
        program, about = _NEEDED[language]
        if not shutil.which(program, path=path):
            yield f"{program} is not installed here: this needs {about}"


def _next(place: str, made: Made) -> list[str]:
    return [f"cd {shlex.quote(place)}", "hilt ext test .", f"hilt {made.try_it}", "hilt ext dev ."]


def _told(place: str, made: Made, missing: list[str]) -> str:
    files = "\n".join(f"  {Path(place, name)}" for name in made.files)
    warned = "".join(f"\n{line}" for line in missing)
    steps = "\n".join(f"  {line}" for line in _next(place, made))
    return f"made {place}:\n{files}{warned}\nnext:\n{steps}"
