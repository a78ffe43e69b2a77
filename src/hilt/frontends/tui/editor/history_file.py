"""The file in which prompts outlive a session: a line of JSON each, written by several programs at once.

Owns the file. Nothing here raises: without a file that can be used there is less to remember, and that is all.
"""

import fcntl
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from hilt.frontends.terminal import clean
from hilt.frontends.tui.editor.history import KEPT

log = logging.getLogger(__name__)

_CROWDED = 2 * KEPT
"""Lines from which on the file is written anew with the newest."""
_LONGEST = 100_000
"""Bytes of a line. A longer text is remembered in this session only."""
_LARGEST = 8_000_000
"""Bytes that are read, from the end of the file."""
_PLAIN = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
"""Whatever stands in the file's place, opening it takes no time."""
_TRIES = 10


class Entry(msgspec.Struct):
    text: str


class HistoryFile:
    def __init__(self, path: Path, mask: Callable[[str], str]) -> None:
        """`mask` blanks what must not be written down."""
        self._path = path
        self._mask = mask
        self._late: list[bytes] = []
        """Lines that found the file taken."""

    def append(self, text: str) -> None:
        """Write it down, unless another program has the file: then with the next one."""
        line = self._line(text)
        if len(line) <= _LONGEST:
            self._late = [*self._late, line][-KEPT:]
        try:
            with self._locked() as fd:
                self._write(fd)
        except OSError as error:
            log.info("the history is not kept: %s", error)

    def read(self) -> list[str]:
        """What there is, oldest first. Takes its time: not for the loop."""
        try:
            fd = os.open(self._path, os.O_RDONLY | _PLAIN)
        except OSError as error:
            log.info("there is no history: %s", error)
            return []
        try:
            texts, crowded = _parsed(fd)
            if crowded:
                self._rewrite()
            return texts
        except OSError as error:
            log.info("the history cannot be read: %s", error)
            return []
        finally:
            os.close(fd)

    def _line(self, text: str) -> bytes:
        sound = text.encode("utf-8", "replace").decode()
        return msgspec.json.encode(Entry(self._mask(sound))) + b"\n"

    def _write(self, fd: int) -> None:
        size = os.fstat(fd).st_size
        cut = size > 0 and os.pread(fd, 1, size - 1) != b"\n"  # a program died while it wrote, or the disk was full
        while self._late:
            data = b"\n" * cut + self._late[0]
            if os.write(fd, data) < len(data):
                return
            self._late.pop(0)
            cut = False

    def _rewrite(self) -> None:
        """Keep the newest. Another program that appends does it before this, or finds the new file."""
        with self._locked() as fd:
            texts, crowded = _parsed(fd)
            if not crowded:
                return
            beside = self._path.with_name(f".{self._path.name}.{os.getpid()}")
            new = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _PLAIN, 0o600)
            try:
                with os.fdopen(new, "wb") as file:
                    file.writelines(map(self._line, texts))
                beside.replace(self._path)
            except OSError:
                beside.unlink(missing_ok=True)
                raise

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The file, for one program at a time. Raises `BlockingIOError` when another has it."""
        for _ in range(_TRIES):
            fd = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _PLAIN, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(fd).st_ino == self._path.stat().st_ino:  # otherwise it was written anew meanwhile
                    yield fd
                    return
            finally:
                os.close(fd)
        raise BlockingIOError("it is written anew again and again")


def _parsed(fd: int) -> tuple[list[str], bool]:
    """The newest texts, and whether there is much more than that."""
    size = os.fstat(fd).st_size
    lines = os.pread(fd, _LARGEST, max(0, size - _LARGEST)).split(b"\n")
    if size > _LARGEST:
        del lines[0]  # the end of one
    texts: list[str] = []
    for line in lines:
        text = _text(line)
        if text and (not texts or texts[-1] != text):
            texts.append(text)
    return texts[-KEPT:], len(lines) > _CROWDED or size > _LARGEST


def _text(line: bytes) -> str:
    """Empty for a line that cannot be used. Whoever may write the file may have written anything."""
    try:
        return clean(msgspec.json.decode(line, type=Entry).text)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""
