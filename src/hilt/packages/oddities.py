"""What a person should be told about the files of an extension before they agree to run it.

Owns the list, which is short on purpose: text that shows otherwise than it reads, programs nobody can read, keys that
should not be there, and what runs by itself. It finds what was hidden carelessly or on purpose; it does not judge, and
finding nothing proves nothing.
"""

import os
import re
from pathlib import Path

import msgspec
from msgspec import Struct

from hilt.model.unseen import CARRIERS, DIRECTIONS, JOINING, PICTURES, UNSEEN
from hilt.packages.manifest import MANIFESTS
from hilt.packages.trees import Tree

_MOST = 100
_MOST_PER_FILE = 5
_LARGEST_TEXT = 2 * 1024 * 1024
"""Of which hidden characters are looked for; a larger one is told of by its size."""
_LONGEST_LINE = 5000
_SCRIPTS = (".py", ".js", ".mjs", ".cjs", ".ts", ".sh", ".rb", ".pl", ".lua")
_BINARIES = {b"\x7fELF": "Linux", b"MZ": "Windows", b"\xcf\xfa\xed\xfe": "macOS", b"\xca\xfe\xba\xbe": "macOS or Java"}
_BINARIES |= {b"\xfe\xed\xfa\xcf": "macOS", b"\xce\xfa\xed\xfe": "macOS", b"\0asm": "WebAssembly"}
_KEY = re.compile(rb"-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----")
_KEY_NAMES = re.compile(r"(.*/)?(id_(rsa|dsa|ecdsa|ed25519)|\.env|\.netrc|\.npmrc|\.pypirc|credentials\.json)")
_POINTER = b"version https://git-lfs.github.com/spec/"
_BY_THEMSELVES = ("preinstall", "install", "postinstall", "prepare")

_HIDDEN = re.compile(f"[{UNSEEN}]")
_MEANT = re.compile(
    # A flag made of tags, a picture with its colour and its companions, a key cap.
    f"\U0001f3f4[\U000e0020-\U000e007e]+\U000e007f|[{PICTURES}]\ufe0f?(\u200d[{PICTURES}]\ufe0f?)*|[0-9#*]\ufe0f\u20e3"
    # Letters of scripts in which a joiner changes how words are written.
    f"|(?<=[{JOINING}])[\u200c\u200d]"
)
_FOREIGN = re.compile(r"[A-Za-z][^\W\d_A-Za-z\u00c0-\u024f]|[^\W\d_A-Za-z\u00c0-\u024f][A-Za-z]")
"""A Latin letter beside one of another script, as in a name that imitates another."""


class Oddity(Struct, frozen=True):
    file: str
    """Its path in the tree."""
    line: int
    """From 1; 0 when it is about the file as a whole."""
    what: str


def oddities_of(directory: Path, tree: Tree) -> tuple[Oddity, ...]:
    """Of a tree that nobody else changes any more. The first hundred; the manifest's come first. Raises `OSError`."""
    found: list[Oddity] = []
    for path in sorted(tree.files, key=lambda path: (path not in MANIFESTS, path)):
        file = tree.files[path]
        if not path.isascii():
            found.append(Oddity(path, 0, _of_name(path)))
        if file.link:
            continue
        if file.size > _LARGEST_TEXT:
            looked = f"only the first {_LARGEST_TEXT >> 20} MiB were looked at"
            found.append(Oddity(path, 0, f"is large: {file.size >> 20} MiB, of which {looked}"))
        found += of_content(path, _head(directory / path))
        if len(found) >= _MOST:
            # Somebody may have put them there so that one is not.
            rest = "is where looking ended: there is more that is odd than anybody reads"
            return (*found[:_MOST], Oddity(path, 0, rest))
    return tuple(found)


def of_content(path: str, data: bytes) -> list[Oddity]:
    """What is odd in a file of that path and content."""
    found: list[Oddity] = []
    for magic, system in _BINARIES.items():
        if data.startswith(magic):
            return [Oddity(path, 0, f"is a program in binary form ({system}), which nobody can read")]
    if _KEY_NAMES.fullmatch(path) or _KEY.search(data):
        found.append(Oddity(path, 0, "looks like a private key or a file of secrets"))
    if data.startswith(_POINTER):
        found.append(Oddity(path, 0, "stands for a large file that was not fetched (git-lfs)"))
    if path == ".gitmodules":
        found.append(Oddity(path, 0, "names other repositories (submodules), which were not fetched"))
    if path.rpartition("/")[2] == "package.json":
        found += _by_themselves(path, data)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return found
    return found + _hidden(path, text) + _unreadable(path, text)


def _head(path: Path) -> bytes:
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        return file.read(_LARGEST_TEXT)


def _of_name(path: str) -> str:
    if _FOREIGN.search(path):
        return "mixes letters of different alphabets in its name, which may look like another"
    return "has letters in its name that are not ASCII"


def _hidden(path: str, text: str) -> list[Oddity]:
    if text.isascii():
        return []
    # A mark at the very front says how the file is written, and is no text.
    plain = _MEANT.sub(lambda match: "x" * len(match[0]), text.removeprefix("\ufeff"))
    found: list[Oddity] = []
    for match in _HIDDEN.finditer(plain):
        line = plain.count("\n", 0, match.start()) + 1
        if not found or found[-1].line != line:
            found.append(Oddity(path, line, f"holds {_named(match[0])}"))
        if len(found) == _MOST_PER_FILE:
            break
    return found


def _named(character: str) -> str:
    import unicodedata

    code = f"U+{ord(character):04X}"
    if re.match(f"[{DIRECTIONS}]", character):
        return f"{code}, which changes the order in which text is shown"
    if re.match(f"[{CARRIERS}]", character):
        return f"{code}, an invisible character that can carry hidden text"
    return f"{code} ({unicodedata.name(character, 'unnamed').lower()}), which cannot be seen"


def _unreadable(path: str, text: str) -> list[Oddity]:
    if not path.endswith(_SCRIPTS) or len(text) < _LONGEST_LINE:
        return []
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > _LONGEST_LINE:
            return [Oddity(path, number, f"has a line of {len(line)} characters, which nobody reads")]
    return []


def _by_themselves(path: str, data: bytes) -> list[Oddity]:
    try:
        scripts = msgspec.json.decode(data, type=dict[str, object]).get("scripts")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return []
    if not isinstance(scripts, dict):
        return []
    return [
        Oddity(path, 0, f"has a script that package managers run by themselves: {name}")
        for name in _BY_THEMSELVES
        if name in scripts
    ]
