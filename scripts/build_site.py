"""Build the documentation as a site in site/, from the pages as they lie in the repository.

    python scripts/build_site.py

A page links to its neighbours as they lie here, so that it can be read without a site. The site has `docs` at its top:
so what the pages are and link to is copied to build/docs, with the links between them put right. What is copied follows
from the links; zensical.toml says in which order it is shown. zensical makes HTML of it, and refuses a link to a page
or a heading that there is not.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAGED = ROOT / "build" / "docs"
_LINK = re.compile(r"(?<=\]\()(?P<path>[^)\s#:]+)(?P<anchor>#[^)\s]*)?(?=\))")
_FENCE = re.compile(r"^ *(?P<ticks>`{3,})(?P<language>[^`]*)$")
_SAVED = re.compile(r"^ *<!-- *file: *(?P<name>.*?) *-->$")
_LANGUAGES = {".py": "python", ".ts": "typescript", ".mjs": "javascript", ".js": "javascript", ".go": "go", ".sh": "sh"}
_LANGUAGES |= {".c": "c", ".json": "json", ".jsonl": "json", ".yaml": "yaml", ".toml": "toml"}
_CODE = re.compile(r"`[^`]*`")
_COLOURED = {"jsonl": "json"}
"""Languages of our own, by those that they are coloured as."""


class Broken(Exception):
    """A link that leads nowhere."""


def place(source: Path) -> Path:
    """Where a file of the repository stands on the site. The README is what one sees first there, too."""
    path = source.relative_to(ROOT)
    if path == Path("README.md"):
        return Path("index.md")
    return path.relative_to("docs") if path.parts[0] == "docs" else path


def gathered() -> dict[Path, str | None]:
    """The text of every page, and nothing for what else is linked to, by their places in the repository."""
    found: dict[Path, str | None] = {}
    waiting = [*sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("README.md"))]
    while waiting:
        source = waiting.pop()
        if source in found or source == ROOT / "README.md":
            continue
        found[source] = None
        if source.suffix == ".md":
            found[source] = page = source.read_text(encoding="utf-8")
            waiting += [target(source, link["path"]) for link in _links(page)]
    return found


def target(source: Path, path: str) -> Path:
    """What a link leads to: of a directory, what it says about itself."""
    file = Path(os.path.normpath(source.parent / path))
    file = file / "README.md" if file.is_dir() else file
    if not file.is_file() or not file.is_relative_to(ROOT):
        raise Broken(f"{source.relative_to(ROOT)}: {path}: there is no such file in the repository")
    return file


def _links(page: str) -> Iterator[re.Match[str]]:
    for line, told in _lines(page):
        yield from _LINK.finditer(line) if told else ()


def staged(source: Path, page: str) -> str:
    """A page for the site: links put right, and above a block of code the name of the file that it is."""
    return "\n".join(_staged_lines(source, page))


def _staged_lines(source: Path, page: str) -> Iterator[str]:
    def moved(link: re.Match[str]) -> str:
        leads = place(target(source, link["path"]))
        return os.path.relpath(leads, place(source).parent) + (link["anchor"] or "")

    name = ""
    for line, told in _lines(page):
        if told and (saved := _SAVED.match(line)):
            name = saved["name"]
        elif told and (fence := _FENCE.match(line)):
            language = fence["language"].strip()
            title = f' title="{name}"' if name and language else ""
            yield line[: fence.end("ticks")] + _COLOURED.get(language, language) + title
            name = ""
        elif told and line.startswith("|"):
            # Within code a bar is escaped for code hosts, and shown as it is here.
            yield _CODE.sub(lambda code: code[0].replace(r"\|", "|"), _LINK.sub(moved, line))
        else:
            yield _LINK.sub(moved, line) if told else line


def _lines(page: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it is told: what stands within a fence is shown as it is."""
    ticks = ""
    for line in page.split("\n"):
        if ticks:
            yield line, False
            ticks = "" if line.strip() == ticks else ticks
        else:
            yield line, True
            fence = _FENCE.match(line)
            ticks = fence["ticks"] if fence else ""


def with_sources(source: Path, page: str) -> str:
    """An example is shown whole: below what it says of itself, its files. A copy of an SDK is none of them."""
    beside = sorted(file for file in source.parent.iterdir() if file.suffix in _LANGUAGES and "sdk" not in file.stem)
    shown = [f"## Its files\n\n{_block(file)}" if file == beside[0] else _block(file) for file in beside]
    return "\n".join([page, *shown])


def _block(file: Path) -> str:
    text = file.read_text(encoding="utf-8").rstrip("\n")
    return f'````{_LANGUAGES[file.suffix]} title="{file.name}"\n{text}\n````\n'


def stage() -> None:
    shutil.rmtree(STAGED, ignore_errors=True)
    for source, page in gathered().items():
        file = STAGED / place(source)
        file.parent.mkdir(parents=True, exist_ok=True)
        if page is None:
            shutil.copyfile(source, file)
            continue
        text = staged(source, page)
        file.write_text(with_sources(source, text) if ROOT / "examples" in source.parents else text, encoding="utf-8")
    shutil.copytree(ROOT / "docs" / "assets", STAGED / "assets")


def main() -> None:
    try:
        stage()
    except Broken as error:
        sys.exit(str(error))
    built = subprocess.run([sys.executable, "-m", "zensical", "build", "--clean", "--strict"], cwd=ROOT, check=False)
    sys.exit(built.returncode)


if __name__ == "__main__":
    main()
