"""A command's output file: following it while it grows, and what of it the model sees."""

import codecs
import fcntl
import os
import time
from pathlib import Path

from msgspec import Struct

_MOST_PER_TICK = 64 * 1024
_MOST_BYTES = 50_000  # with the frame around it the answer stays within 51,200 bytes and 2,000 lines
_MOST_LINES = 1_980
_PIECE = 1 << 20
_KEPT_SECONDS = 7 * 24 * 3600


class Shown(Struct, frozen=True):
    text: str
    cut: bool
    """Whether the file holds more than the text."""


def create(path: Path) -> int:
    """A new file that children append to. Locked for as long as any of them has it open: see `is_held`."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _tidy(path.parent)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
    except OSError:
        pass  # some file systems have no locks; then nothing counts as held
    return fd


def _tidy(folder: Path) -> None:
    """Remove outputs that nobody has written to for a week: no conversation needs them any more."""
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                if time.time() - entry.stat(follow_symlinks=False).st_mtime > _KEPT_SECONDS:
                    discard(Path(entry.path))
            except OSError:
                continue  # another hilt was quicker, or it is not ours to remove


def discard(path: Path) -> None:
    try:
        path.unlink()
    except OSError:
        pass  # gone already, or in a place where it never could be made


class Follower:
    """Reads what was appended since the last time. Opens the file when it is there."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1
        self._at = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def next(self, *, final: bool = False) -> str:
        """The new text; of a flood only the newest part, with a line that says so."""
        if not self._open():
            return ""
        size = os.fstat(self._fd).st_size
        skipped = size - self._at - _MOST_PER_TICK
        text = ""
        if skipped > 0:
            self._at += skipped
            self._decoder.reset()
            text = f"\n… {skipped} bytes skipped …\n"
        data = os.pread(self._fd, size - self._at, self._at)
        self._at += len(data)
        if skipped > 0:
            data = _from_character(data)
        return text + self._decoder.decode(data, final=final)

    def is_held(self) -> bool:
        """Whether some process still has the file open for writing."""
        if not self._open():
            return False
        try:
            # The lock belongs to the open file that the children inherited, and ends with the last of them.
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(self._fd, fcntl.LOCK_UN)
        except OSError as error:
            return isinstance(error, BlockingIOError)
        return False

    def shown(self) -> Shown:
        """The beginning and the end, when there is too much for all. Reads the file, which the flood guard bounds."""
        if not self._open():
            return Shown("", cut=False)
        size = os.fstat(self._fd).st_size
        if size <= _MOST_BYTES:
            data = os.pread(self._fd, size, 0)
            if data.count(b"\n") <= _MOST_LINES:
                text = data.decode(errors="replace")
                if len(text.encode()) <= _MOST_BYTES:
                    return Shown(text, cut=False)
        half = _MOST_BYTES // 2
        head, tail = self._ends(size, half)
        if max(_shown_length(head), _shown_length(tail)) > half:
            head, tail = self._ends(size, half // 3)  # an invalid byte takes three when shown
        lines = self._count_lines(len(head), size - len(tail))
        omitted = f"{lines} lines" if lines else f"{size - len(head) - len(tail)} bytes"
        return Shown(f"{_text(head)}\n… {omitted} omitted …\n{_text(tail)}", cut=True)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> bool:
        if self._fd < 0:
            try:
                self._fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return False
        return True

    def _ends(self, size: int, most: int) -> tuple[bytes, bytes]:
        head = _first_lines(os.pread(self._fd, most, 0))
        start = max(size - most, len(head))
        return head, _last_lines(os.pread(self._fd, size - start, start))

    def _count_lines(self, start: int, end: int) -> int:
        count = 0
        while start < end and (piece := os.pread(self._fd, min(_PIECE, end - start), start)):
            count += piece.count(b"\n")
            start += len(piece)
        return count


def _first_lines(data: bytes) -> bytes:
    """Whole lines from the front, as many as may be shown; a line without end is cut between characters."""
    lines = data.split(b"\n", _MOST_LINES // 2)
    if len(lines) == 1:
        return codecs.getincrementaldecoder("utf-8")("surrogateescape").decode(data).encode(errors="surrogateescape")
    return data[: len(data) - len(lines[-1])]


def _last_lines(data: bytes) -> bytes:
    lines = data.rsplit(b"\n", _MOST_LINES // 2)
    if len(lines) == 1:
        return _from_character(data)
    return data[len(lines[0]) + 1 :]


def _from_character(data: bytes) -> bytes:
    """Without the rest of a character that was cut through."""
    for index in range(min(4, len(data))):
        if data[index] & 0xC0 != 0x80:
            return data[index:]
    return data


def _text(data: bytes) -> str:
    return data.decode(errors="replace").strip("\n")


def _shown_length(data: bytes) -> int:
    return len(data.decode(errors="replace").encode())
