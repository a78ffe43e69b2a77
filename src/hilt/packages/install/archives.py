"""Unpacking .zip and .tar archives that anybody may have made.

Owns which archives are taken, their compression and the zip format's traps; `tarballs` reads tar, `building` writes.
Only regular files and directories come out, never a link; what an archive says of its sizes is checked twice, before
anything is written and while it streams.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from hilt.errors import PackageError
from hilt.packages.install.building import Building
from hilt.packages.install.tarballs import Stream, Tar
from hilt.packages.layout import CAPS, Caps, refuse
from hilt.packages.members import shown
from hilt.packages.trees import remove_tree

if TYPE_CHECKING:
    from zipfile import ZipFile, ZipInfo

SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz2")

_CHUNK = 1 << 16
_MOST_ENTRIES_SEEN = 100_000
"""Of a zip's directory, which is held in memory; more than may be unpacked, for archives may lie in archives."""
_RATIO, _RATIO_FROM = 200, 4 * 1024 * 1024
"""Nothing honest of this size shrinks so well."""
_OVERHEAD = 2048
"""Bytes a tar spends on an entry, besides its content."""
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_ENTRY = b"PK\x01\x02"
_HINT = "an archive of an extension holds plain files and folders only"
_BROKEN = "get the archive again: it seems to be damaged"
_JUNK = (".DS_Store", "__MACOSX")
"""What one system puts into every archive, beside the files."""


def unpack(archive: Path, directory: Path, caps: Caps = CAPS) -> None:
    """Make `directory`, which must not exist, of what the archive holds, without the one folder around it all.

    Raises `PackageError`, and leaves nothing then.
    """
    origin, unpacked = shown(archive), directory.with_name(f"{directory.name}.unpacked")
    try:
        with _opened(archive, caps) as file, Building(unpacked, origin, caps) as building:
            if file.read(4) in (b"PK\x03\x04", b"PK\x05\x06"):
                _unzip(file, origin, building)
            else:
                _untar(_inflated(file, origin, caps), origin, building)
        _inner(unpacked).rename(directory)
    except OSError as error:  # also what decompressing raises
        hint = "check the disk and the rights of the file" if error.errno else _BROKEN
        raise PackageError(f"{origin} cannot be unpacked: {error.strerror or shown(str(error))}", hint=hint) from error
    finally:
        remove_tree(unpacked)


def _opened(archive: Path, caps: Caps) -> IO[bytes]:
    file = os.fdopen(os.open(archive, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC), "rb")
    about = os.fstat(file.fileno())
    if stat.S_ISREG(about.st_mode) and about.st_size <= caps.size:
        return file
    file.close()
    if stat.S_ISREG(about.st_mode):
        raise refuse(shown(archive), f"is larger than {caps.size} bytes", "pack only what the extension needs to run")
    raise refuse(shown(archive), "is not a regular file", "name an archive")


def _inner(unpacked: Path) -> Path:
    """The one folder around everything, if there is one."""
    entries = list(unpacked.iterdir())
    return entries[0] if len(entries) == 1 and entries[0].is_dir() else unpacked


def _wanted(path: str) -> bool:
    return path not in ("", ".") and not path.startswith("__MACOSX/") and path.rpartition("/")[2] not in _JUNK


# tar


def _untar(stream: Stream, origin: str, building: Building) -> None:
    tar = Tar(stream, origin)
    try:
        for member in tar:
            path = member.path.removeprefix("./")
            if not _wanted(path):
                continue
            if member.folder:
                building.folder(path)
            else:
                building.expect(member.size)
                building.file(path, tar.content(), executable=member.executable)
        while stream.read(_CHUNK):
            pass  # only at its very end a packed stream says whether it was whole
    except EOFError:
        raise refuse(origin, "ends too early", _BROKEN) from None


class _Inflated:
    """A decompressed stream that ends in a refusal when there is more in it than an archive should hold."""

    def __init__(self, stream: Stream, file: IO[bytes], origin: str, caps: Caps) -> None:
        self._stream, self._file, self._origin = stream, file, origin
        self._most = caps.size + caps.entries * _OVERHEAD
        self._read = 0

    def read(self, size: int) -> bytes:
        import lzma
        import zlib

        try:
            data = self._stream.read(size)
        except (lzma.LZMAError, zlib.error) as error:
            raise refuse(self._origin, f"cannot be unpacked: {error}", _BROKEN) from error
        self._read += len(data)
        if self._read > self._most or _bomb(self._read, self._file.tell()):
            raise refuse(self._origin, "unpacks to far more than an extension can need", _HINT)
        return data


def _bomb(size: int, packed: int) -> bool:
    return size > _RATIO_FROM and size > packed * _RATIO


def _inflated(file: IO[bytes], origin: str, caps: Caps) -> Stream:
    file.seek(0)
    magic = file.read(6)
    file.seek(0)
    if magic.startswith(b"\x1f\x8b"):
        import gzip

        return _Inflated(gzip.GzipFile(fileobj=file), file, origin, caps)
    if magic.startswith(b"BZh"):
        import bz2

        return _Inflated(bz2.BZ2File(file), file, origin, caps)
    if magic == b"\xfd7zXZ\0":
        import lzma

        return _Inflated(lzma.LZMAFile(file, format=lzma.FORMAT_XZ), file, origin, caps)
    return file


# zip


def _unzip(file: IO[bytes], origin: str, building: Building) -> None:
    import struct
    import zipfile
    import zlib

    if _entries(file) > _MOST_ENTRIES_SEEN:
        raise refuse(origin, "holds far too many entries", _HINT)
    try:
        with zipfile.ZipFile(file) as archive:
            infos = [info for info in archive.infolist() if _wanted(info.orig_filename)]
            _check_directory(infos, archive.start_dir, origin)
            building.expect(sum(info.file_size for info in infos))
            for info in infos:
                _unzip_one(archive, info, origin, building)
    # All that reading a broken one was seen to raise.
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, ValueError) as error:
        raise refuse(origin, f"cannot be unpacked: {shown(str(error))}", _BROKEN) from error


def _unzip_one(archive: "ZipFile", info: "ZipInfo", origin: str, building: Building) -> None:
    # What the reader made of the name is not what stands there: it cuts it at a NUL.
    path = info.orig_filename.removeprefix("./")
    if path.endswith("/"):
        building.folder(path.rstrip("/"))
        return
    with archive.open(info) as content:
        building.file(path, _content(content, info, origin), executable=bool(info.external_attr >> 16 & 0o111))


def _content(content: IO[bytes], info: "ZipInfo", origin: str) -> Iterator[bytes]:
    """Read to the very end, for only there its checksum is compared."""
    size = 0
    while chunk := content.read(_CHUNK):
        size += len(chunk)
        yield chunk
    if size != info.file_size:
        raise refuse(f"{origin}: {info.orig_filename}", "is shorter than it says", _BROKEN)


def _check_directory(infos: "list[ZipInfo]", end: int, origin: str) -> None:
    """Whatever its directory says by itself that is no good. Raises `PackageError`."""
    for info in infos:
        if why := _unfit(info):
            raise refuse(f"{origin}: {info.orig_filename}", why, _HINT)
    # From behind: each must end before the next begins, lest a few bytes be unpacked over and over.
    for info in sorted(infos, key=lambda one: one.header_offset, reverse=True):
        if info.header_offset + 30 + len(info.orig_filename) + info.compress_size > end:
            raise refuse(f"{origin}: {info.orig_filename}", "overlaps with another file of the archive", _HINT)
        end = info.header_offset


def _unfit(info: "ZipInfo") -> str:
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind == stat.S_IFLNK:
        return "is a link"
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is neither a file nor a folder"
    if info.flag_bits & _ENCRYPTED:
        return "is encrypted"
    if info.compress_type not in (0, 8):
        return "is packed in an unusual way"
    if _bomb(info.file_size, info.compress_size):
        return "unpacks to far more than an extension can need"
    return ""


def _entries(file: IO[bytes]) -> int:
    """At least as many as there are: nothing is built in memory for a zip that says it holds millions."""
    file.seek(0)
    count, tail = 0, b""
    while chunk := file.read(1 << 20):
        count += (tail + chunk).count(_ENTRY)
        tail = chunk[-3:]
    file.seek(0)
    return count
