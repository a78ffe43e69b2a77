"""Which paths a tree of an extension may hold, and how much: the rules, applied to one path after another.

Owns the caps and what makes a path unfit. Reading a tree is `trees`' business, writing one that arrives in pieces is
`building`'s; both ask here first.
"""

from collections.abc import Mapping

from msgspec import Struct

from hilt.errors import PackageError
from hilt.packages.members import shown

LEFT_OUT = frozenset((".git", "__pycache__"))
"""No part of an extension: a repository's own files, and what Python makes of sources by itself."""

_LONGEST_PATH = 1024
_DEEPEST = 40
_MOST_HOPS = 40
_HINT = "an extension holds plain files and folders, and links between them"


class Caps(Struct, frozen=True):
    entries: int = 20_000
    """Files, links and directories together."""
    size: int = 256 * 1024 * 1024
    """Bytes of all files together."""


CAPS = Caps()


def refuse(path: str, why: str, hint: str = _HINT) -> PackageError:
    return PackageError(f"{shown(path)} {why}", hint=hint)


class Layout:
    """What was admitted so far. `origin` is how messages call the whole."""

    def __init__(self, origin: str, caps: Caps = CAPS) -> None:
        self._origin = origin
        self.caps = caps
        self._taken: dict[str, str] = {}
        """As a file system that minds neither case nor Unicode form would see it, the path as it was written."""
        self.size = 0

    def admit(self, path: str) -> None:
        """Raises `PackageError` unless it may be added."""
        if why := _unfit(path):
            raise refuse(self._within(path), why)
        folded = _folded(path)
        if taken := self._taken.get(folded):
            why = "is there twice" if taken == path else f'differs from "{shown(taken)}" by case or Unicode form only'
            raise refuse(self._within(path), why, "not every file system can keep both: rename or remove one")
        self._taken[folded] = path
        if len(self._taken) > self.caps.entries:
            raise refuse(
                self._origin,
                f"holds more than {self.caps.entries} files and folders",
                "name the directory of the extension itself, without what it does not need to run",
            )

    def weigh(self, more: int) -> None:
        """Count so many bytes of content. Raises `PackageError` when it becomes too much."""
        self.size += more
        if self.size > self.caps.size:
            most = f"{self.caps.size >> 20} MiB" if self.caps.size >= 1 << 20 else f"{self.caps.size} bytes"
            raise refuse(
                self._origin,
                f"holds more than {most}",
                "leave out what the extension does not need to run, or let it download that by itself",
            )

    @property
    def rest(self) -> int:
        """How many names of a directory must be looked at to find out that there are too many."""
        return max(0, self.caps.entries - len(self._taken)) + 1 + len(LEFT_OUT)

    def _within(self, path: str) -> str:
        return f"{self._origin}: {path or 'an empty name'}"


def check_links(origin: str, links: Mapping[str, str], others: Mapping[str, object]) -> None:
    """Raise `PackageError` unless every link leads, step by step, to something of the same tree.

    `others` are the files by path; directories follow from them. One that leads nowhere is refused as well: whoever
    creates its target later would add a file that nobody has looked at.
    """
    known = set(others) | set(links)
    for path in (*others, *links):
        while path := path.rpartition("/")[0]:
            known.add(path)
    for path, target in links.items():
        if why := _astray(path, target, links, known):
            raise refuse(f"{origin}: {path}", f'is a link to "{shown(target)}", which {why}')


def _astray(path: str, target: str, links: Mapping[str, str], known: set[str]) -> str:
    """Walk as the kernel would. Empty when it arrives inside."""
    at = path.split("/")[:-1]
    ahead = target.split("/")[::-1]
    hops = 0
    if target.startswith("/"):
        return "leaves the tree"
    while ahead:
        step = ahead.pop()
        if step in ("", "."):
            continue
        if step == "..":
            if not at:
                return "leaves the tree"
            at.pop()
            continue
        if step in LEFT_OUT:
            return f"leads into {step}, which is no part of it"
        at.append(step)
        here = "/".join(at)
        if here in links:
            hops += 1
            if hops > _MOST_HOPS:
                return "leads in a circle"
            if links[here].startswith("/"):
                return "leaves the tree"
            at.pop()
            ahead += links[here].split("/")[::-1]
        elif here not in known:
            return "leads nowhere"
    return ""


def _unfit(path: str) -> str:
    """Why no file may have this path; empty when one may."""
    parts = path.split("/")
    if not path.isprintable():
        return "has a name with characters that cannot be shown, or is not UTF-8"
    if "\\" in path:
        return "has a backslash in its name, which other systems take for a folder"
    if path.startswith("/"):
        return "is an absolute path"
    if any(part in ("", ".", "..") for part in parts):
        return 'has an empty name, "." or ".." in its path'
    if len(parts) > _DEEPEST:
        return f"lies more than {_DEEPEST} folders deep"
    if len(path.encode()) > _LONGEST_PATH or any(len(part.encode()) > 255 for part in parts):
        return "has a name that is too long"
    return ""


def _folded(path: str) -> str:
    if path.isascii():
        return path.lower()
    import unicodedata  # only for the few trees that need it

    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())
