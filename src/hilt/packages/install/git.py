"""Getting one commit out of a git repository that may be hostile.

git itself only talks to the other side and keeps what it gets as objects, in a repository of our own without hooks,
templates, attributes or submodules; it never writes a working tree. The files are made from the objects by `building`,
which has its own rules. How git is called, and what it may do then, is `calling`'s business.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from hilt.errors import PackageError
from hilt.packages.install.building import Building
from hilt.packages.install.calling import Progress, reading, run
from hilt.packages.install.sources import Git
from hilt.packages.layout import CAPS, LEFT_OUT, Caps, refuse
from hilt.packages.members import shown
from hilt.packages.trees import remove_tree

_CHUNK = 1 << 16


class _Object(Struct, frozen=True):
    mode: str
    id: str
    size: int
    path: str


def fetch(git: Git, directory: Path, progress: Progress = lambda _: None, caps: Caps = CAPS) -> str:
    """Make `directory`, which must not exist, of the files of the commit its ref means, and say which that is.

    Raises `PackageError`, and leaves nothing then.
    """
    repository = directory.with_name(f"{directory.name}.git")
    try:
        wanted, commit = (git.ref, git.ref) if git.exact else _advertised(git)
        run(git, ["init", "--quiet", "--bare", "--template=", "--", str(repository)])
        depth = ["--depth=1", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--progress"]
        run(git, ["fetch", *depth, "--", git.url, wanted], repository, progress, caps)
        # What came is what was asked for: git checks every object against its name.
        found = run(git, ["rev-parse", "--verify", "--end-of-options", f"{wanted}^{{commit}}"], repository)
        if found.decode().strip() != commit:
            raise PackageError(
                f"{shown(git.url)}: {shown(wanted)} is not the commit {commit}", hint="try again, or name the commit"
            )
        _build(git, repository, commit, directory, caps)
    finally:
        remove_tree(repository)
    return commit


def _advertised(git: Git) -> tuple[str, str]:
    """What to ask for, and the commit it stands for: a tag may be an object of its own."""
    names = [f"refs/tags/{git.ref}", f"refs/heads/{git.ref}", git.ref] if git.ref else ["HEAD"]
    patterns = [pattern for name in names for pattern in (name, f"{name}^{{}}")]
    said = run(git, ["ls-remote", "--quiet", "--", git.url, *patterns]).decode(errors="replace")
    refs = {name: commit for commit, _, name in (line.partition("\t") for line in said.split("\n"))}
    for name in names:
        if name in refs:
            return refs[name], refs.get(f"{name}^{{}}", refs[name])
    if git.ref:
        raise PackageError(
            f'{shown(git.url)} has no branch or tag "{shown(git.ref)}"',
            hint="name one that is there, or a commit by all of its 40 digits",
        )
    raise PackageError(f"{shown(git.url)} is empty", hint="name a branch or a tag of it")


# From objects to files


def _build(git: Git, repository: Path, commit: str, directory: Path, caps: Caps) -> None:
    listing = run(git, ["ls-tree", "-r", "-z", "-l", "--full-tree", commit], repository)
    objects = [_parsed(line) for line in listing.split(b"\0") if line]
    wanted = [one for one in objects if one.mode != "160000" and not LEFT_OUT & set(one.path.split("/"))]
    with Building(directory, shown(git.url), caps) as building:
        building.expect(sum(one.size for one in wanted))
        with reading(repository, git) as process:
            for one in wanted:
                _make(one, process, building, git)


def _parsed(line: bytes) -> _Object:
    about, _, path = line.partition(b"\t")
    mode, _, name, size = about.decode().split()
    return _Object(mode, name, int(size) if size.isdigit() else 0, path.decode(errors="surrogateescape"))


def _make(one: _Object, process: "subprocess.Popen[bytes]", building: Building, git: Git) -> None:
    chunks = _content(one, process, git)
    match one.mode:
        case "100644" | "100664" | "100755":
            building.file(one.path, chunks, executable=one.mode == "100755")
        case "120000":
            if one.size > 4096:
                raise refuse(f"{shown(git.url)}: {one.path}", "is a link to a name that is too long")
            building.link(one.path, b"".join(chunks).decode(errors="surrogateescape"))
        case _:
            raise refuse(f"{shown(git.url)}: {one.path}", f"is of an unknown kind {one.mode}")


def _content(one: _Object, process: "subprocess.Popen[bytes]", git: Git) -> Iterator[bytes]:
    assert process.stdin and process.stdout
    process.stdin.write(f"{one.id}\n".encode())
    process.stdin.flush()
    said = process.stdout.readline(_CHUNK)
    left = one.size + 1
    if said != f"{one.id} blob {one.size}\n".encode():
        raise refuse(f"{shown(git.url)}: {one.path}", "is missing in what was fetched", "try again")
    while left:
        chunk = process.stdout.read(min(left, _CHUNK))
        if not chunk:
            raise refuse(f"{shown(git.url)}: {one.path}", "ends too early in what was fetched", "try again")
        left -= len(chunk)
        yield chunk if left else chunk[:-1]  # a newline follows each
