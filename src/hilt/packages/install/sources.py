"""Where an extension may come from: the words of a command line as a value, or a refusal with its reason.

Owns which addresses are taken. That nothing else is reached later on is also seen to by `git` itself; this is where a
person is told why. Nothing is fetched or opened here, only looked at.
"""

import os
import re
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from hilt.errors import PackageError
from hilt.packages.install.archives import SUFFIXES
from hilt.packages.members import shown

_LONGEST = 2000
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_HELPER = re.compile(r"[A-Za-z0-9][A-Za-z0-9+.-]*::")
_SCP = re.compile(r"(?:([^/:@]*)@)?([^/:@]+|\[[^/\]]*\]):(.*)", re.DOTALL)
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]{2,45}\]")
_PATH = re.compile(r"[A-Za-z0-9/._~%+,=@:-]*")
_REF = re.compile(r"[A-Za-z0-9._/+@=#!,-]+")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SCHEMES = {"https": "https", "ssh": "ssh", "git+ssh": "ssh", "ssh+git": "ssh"}
_REASONS = {
    "http": "is not encrypted, so anybody on the way may change what is installed",
    "git": "is not encrypted, so anybody on the way may change what is installed",
    "ftp": "is not encrypted, so anybody on the way may change what is installed",
    "file": "reads any repository of this machine",
}
_FORMS = "give https://HOST/PATH[@REF], ssh://…, git@HOST:PATH[@REF], or the path of a directory, a file or an archive"


class Directory(Struct, frozen=True, tag="directory"):
    path: Path
    """Absolute, as are all paths here."""


class File(Struct, frozen=True, tag="file"):
    path: Path


class Archive(Struct, frozen=True, tag="archive"):
    path: Path


class Git(Struct, frozen=True, tag="git"):
    url: str
    """As git gets it: a URL, the short form of ssh, or an absolute path."""
    ref: str = ""
    """A branch, a tag or a whole commit; empty for what the repository itself shows first."""
    local: bool = False
    """It lies on this machine, and is got over no network; the others, over nothing else."""

    @property
    def exact(self) -> bool:
        return bool(_COMMIT.fullmatch(self.ref))


Source: TypeAlias = Directory | File | Archive | Git


def parse_source(text: str, *, allow_file: bool = False, cwd: Path | None = None) -> Source:
    """Raises `PackageError` with the reason and what would be taken."""
    if not text:
        raise PackageError("there is nothing to install: no source is named", hint=_FORMS)
    if why := _odd(text):
        raise _refusal(text, why)
    if address := _SCHEME.fullmatch(text):
        return _url(text, address[1].lower(), address[2], allow_file=allow_file)
    if _HELPER.match(text):
        raise _refusal(text, "would have git run a program of its choice")
    if (short := _SCP.fullmatch(text)) and not _lies(text, cwd):
        return _short(text, short)
    return _local(text, cwd)


def _odd(text: str) -> str:
    if len(text) > _LONGEST:
        return "is too long"
    if not text.isprintable():
        return "holds characters that cannot be shown"
    if text.startswith("-"):
        return 'begins with "-", like an option'
    return ""


def _url(text: str, scheme: str, rest: str, *, allow_file: bool) -> Git:
    if scheme == "file":
        if not allow_file:
            raise _refusal(text, _REASONS["file"], "add --allow-file, or give the path of the directory")
        return _file_url(text, rest)
    if scheme not in _SCHEMES:
        raise _refusal(text, _REASONS.get(scheme, f"has the scheme {scheme}, which is not taken"))
    place, slash, path = rest.partition("/")
    user, at, host = place.rpartition("@")
    host, colon, port = _with_port(host)
    if at and _SCHEMES[scheme] == "https":
        raise _refusal(
            text, "holds a name or a password, which would be kept in a file", "let git's credential helper keep it"
        )
    if at and not _USER.fullmatch(user):
        raise _refusal(text, "holds a password, or a user that cannot be one", "let an ssh key do that")
    if colon and not (port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65536):
        raise _refusal(text, "has a port that is none")
    _check_host(text, host)
    path, ref = _split(path)
    _check_path(text, path)
    return Git(f"{_SCHEMES[scheme]}://{place}{slash}{path}", _checked_ref(text, ref))


def _with_port(host: str) -> tuple[str, str, str]:
    if host.startswith("["):
        inner, bracket, rest = host.partition("]")
        return inner + bracket, rest[:1], rest[1:]
    return host.partition(":")


def _file_url(text: str, rest: str) -> Git:
    path, ref = _split(rest)
    if not path.startswith("/"):
        raise _refusal(text, "names another machine, or no absolute path", "write file:///PATH")
    _check_path(text, path[1:])
    return Git(f"file://{path}", _checked_ref(text, ref), local=True)


def _short(text: str, short: re.Match[str]) -> Git:
    """`USER@HOST:PATH`, as ssh has it."""
    user, host = short[1], short[2]
    if len(host) == 1:
        raise _refusal(text, "looks like a drive letter")
    if user is not None and not _USER.fullmatch(user):
        raise _refusal(text, "has a user that cannot be one")
    _check_host(text, host)
    path, ref = _split(short[3])
    _check_path(text, path)
    return Git(text[: short.start(3)] + path, _checked_ref(text, ref))


def _split(path: str) -> tuple[str, str | None]:
    """Path and ref. An `@` at the front of a name belongs to the name; a ref may hold another one."""
    found = re.search(r"(?<=[^/])@", path)
    return (path[: found.start()], path[found.end() :]) if found else (path, None)


def _check_host(text: str, host: str) -> None:
    if not host:
        raise _refusal(text, "names no host")
    if not host.isascii():
        raise _refusal(text, "has letters in its host that may look like others", "write the host in ASCII")
    if not _HOST.fullmatch(host) or ".." in host:
        raise _refusal(text, "has a host that cannot be one")


def _check_path(text: str, path: str) -> None:
    if not path.strip("/"):
        raise _refusal(text, "names no repository")
    if not _PATH.fullmatch(path):
        raise _refusal(text, "has characters in its path that no repository needs")
    plain = unquote_to_bytes(path)
    if any(byte < 0x20 or byte == 0x7F for byte in plain) or b"\\" in plain:
        raise _refusal(text, "hides characters in its path")
    for part in plain.split(b"/"):
        if part.startswith(b"-"):
            raise _refusal(text, 'has a part that begins with "-", like an option')
        if part == b"..":
            raise _refusal(text, 'has ".." in its path')


def _checked_ref(text: str, ref: str | None) -> str:
    """What git takes for the name of a branch or tag, and a little less. None was said, so none is checked."""
    if ref is None:
        return ""
    name = f'has the ref "{shown(ref)}", which'
    if not ref:
        raise _refusal(text, "ends in @ without a ref", "name a branch, a tag or a whole commit, or leave out the @")
    if ref.startswith("-"):
        raise _refusal(text, f'{name} begins with "-", like an option')
    if not _REF.fullmatch(ref) or len(ref) > 200:
        raise _refusal(text, f"{name} holds characters that are no part of a ref, or is too long")
    parts = ref.split("/")
    if ".." in ref or ref == "@" or any(not p or p[0] in ".-" or p.endswith((".", ".lock")) for p in parts):
        raise _refusal(text, f"{name} is none that git would take")
    return ref


# Paths


def _lies(text: str, cwd: Path | None) -> bool:
    return os.path.lexists(_path(text, cwd))


def _path(text: str, cwd: Path | None) -> Path:
    place = (cwd or Path.cwd()) / os.path.expanduser(text)  # noqa: PTH111 - never fails, unlike Path.expanduser
    return Path(os.path.realpath(place)) if ".." in place.parts else place.absolute()


def noted(path: Path) -> Path:
    """The same, if it can be written down as where something came from. Raises `PackageError`."""
    if not str(path).isprintable():
        message = f'"{shown(path)}" is refused: there are characters in its path that cannot be shown, or are not UTF-8'
        raise PackageError(message, hint="rename it, or the directories that it lies in, or move it elsewhere")
    return path


def _local(text: str, cwd: Path | None) -> Source:
    path = noted(_path(text, cwd))
    if path.is_dir():
        return Git(str(path), local=True) if _is_bare(path) else Directory(path)
    if path.is_file():
        return Archive(path) if path.name.lower().endswith(SUFFIXES) else File(path)
    if os.path.lexists(path):
        raise _refusal(text, "is neither a directory nor a file")
    before, ref = _split(text)
    repository = _path(before, cwd)
    if ref is not None and repository.is_dir():
        if not (repository / ".git").exists() and not _is_bare(repository):
            raise _refusal(text, "has a ref, and is no git repository", "leave out the @")
        return Git(str(repository), _checked_ref(text, ref), local=True)
    raise PackageError(f'"{shown(text)}": there is no such file or directory', hint=_FORMS)


def _is_bare(path: Path) -> bool:
    return all((path / part).exists() for part in ("HEAD", "objects", "refs"))


def _refusal(text: str, why: str, hint: str = _FORMS) -> PackageError:
    shortened = text if len(text) <= 200 else text[:200] + "…"
    return PackageError(f'"{_without_password(shown(shortened))}" is refused: it {why}', hint=hint)


def _without_password(text: str) -> str:
    return re.sub(r"(?<=://)[^/@]*@", "…@", text)
