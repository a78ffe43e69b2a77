import io
import random
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.errors import PackageError
from hilt.packages.install.archives import unpack
from hilt.packages.layout import Caps
from hilt.packages.trees import read_tree
from support.packages import extension, outside, tar_of, zip_of
from support.properties import patient

MODES = {"a.tar": "w:", "a.tar.gz": "w:gz", "a.tgz": "w:gz", "a.tar.xz": "w:xz", "a.tar.bz2": "w:bz2"}


def zipped(path: Path, source: Path, prefix: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(source.rglob("*")):
            archive.write(file, prefix + str(file.relative_to(source)))
    return path


@pytest.mark.parametrize("prefix", ["", "demo-1.0/"])
def test_a_zip_is_unpacked_without_the_folder_around_it(tmp_path: Path, prefix: str) -> None:
    source = extension(tmp_path / "source", files={"über.txt": "x", "deep/er/file": "y"})
    unpack(zipped(tmp_path / "a.zip", source, prefix), tmp_path / "out")
    assert read_tree(tmp_path / "out") == read_tree(source)


@pytest.mark.parametrize("name", MODES)
@pytest.mark.parametrize("prefix", [".", "demo-1.0"])
@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT])
def test_a_tar_is_unpacked_in_every_form(tmp_path: Path, name: str, prefix: str, form: int) -> None:
    long = "/".join(["long-" * 9] * 4)
    files = {"x" * 90: "long"} if form == tarfile.USTAR_FORMAT else {f"{long}/file.txt": "long", "ü" * 70: "y"}
    source = extension(tmp_path / "source", files=files)
    with tarfile.open(tmp_path / name, MODES[name], format=form) as archive:  # type: ignore[call-overload]  # one of the modes
        archive.add(source, prefix)
    unpack(tmp_path / name, tmp_path / "out")
    assert read_tree(tmp_path / "out") == read_tree(source)


def test_what_one_system_adds_to_every_archive_is_left_out(tmp_path: Path) -> None:
    entries = (("demo/run", b"x"), ("__MACOSX/demo/._run", b"y"), ("demo/.DS_Store", b"z"))
    unpack(zip_of(tmp_path / "a.zip", *entries), tmp_path / "out")
    assert list(read_tree(tmp_path / "out").files) == ["run"]


# A8: names


NAMES = {
    "../evil": r'"\.\."',
    "a/../../evil": r'"\.\."',
    "/tmp/evil": "absolute",
    "//evil": "absolute",
    "..\\evil": "backslash",
    "a\\..\\..\\evil": "backslash",
    "C:\\evil": "backslash",
    "\\\\host\\share": "backslash",
    "a\0b": "cannot be shown",
    "a\nb": "cannot be shown",
    "a\x1b[2Jb": "cannot be shown",
    "a\u202eb": "cannot be shown",
    "a//b": "empty name",
    "a/./b": '"."',
    "..": r'"\.\."',
    "a/..": r'"\.\."',
    "d/" * 45 + "x": "deep",
    "x" * 300: "too long",
}
"""And why each is refused, lest it be by chance."""


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_leaves_the_archive_or_hides_something_is_refused_in_a_zip(tmp_path: Path, name: str) -> None:
    info = zipfile.ZipInfo("placeholder")
    info.filename = name
    refused(tmp_path, zip_of(tmp_path / "a.zip", ("first", b"1"), (info, b"evil"), ("last", b"1")), NAMES[name])


@pytest.mark.parametrize("name", [name for name in NAMES if "\0" not in name])
def test_a_name_that_leaves_the_archive_or_hides_something_is_refused_in_a_tar(tmp_path: Path, name: str) -> None:
    refused(tmp_path, tar_of(tmp_path / "a.tar.gz", ("first", b"1"), (name, b"evil"), ("last", b"1")), NAMES[name])


@pytest.mark.parametrize(
    ("one", "two", "why"),
    [
        ("run", "run", "twice"),
        ("a", "a", "twice"),
        ("run", "RUN", "by case"),
        ("caf\u00e9", "cafe\u0301", "by case"),
        ("a", "a/b", "no folder"),
        ("a/b", "a", "twice"),
        ("A/x", "a/y", "by case"),
    ],
)
@pytest.mark.parametrize("make", [zip_of, tar_of])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_entries_that_cannot_both_be_there_are_refused(
    tmp_path: Path, one: str, two: str, why: str, make: Callable[..., Path]
) -> None:
    refused(tmp_path, make(tmp_path / "archive", (one, b"1"), (two, b"2")), why)


def refused(root: Path, archive: Path, why: str = ".") -> None:
    """With a reason and a hint, and with nothing left anywhere."""
    (root / "inner").mkdir(exist_ok=True)
    before = outside(root, root / "nothing")
    with pytest.raises(PackageError, match=why) as caught:
        unpack(archive, root / "inner" / "out", Caps(entries=50, size=8 * 1024 * 1024))
    assert caught.value.hint and caught.value.message.isprintable()
    assert outside(root, root / "nothing") == before


# A8: kinds


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (tarfile.SYMTYPE, "is a link"),
        (tarfile.LNKTYPE, "is a hard link"),
        (tarfile.CHRTYPE, "device"),
        (tarfile.BLKTYPE, "device"),
        (tarfile.FIFOTYPE, "pipe"),
        (tarfile.GNUTYPE_SPARSE, "sparse"),
        (tarfile.CONTTYPE, "unknown kind"),
        (b"Z", "unknown kind"),
        (b"K", "unknown kind"),
    ],
)
def test_only_files_and_folders_come_out_of_a_tar(tmp_path: Path, kind: bytes, why: str) -> None:
    info = tarfile.TarInfo("odd")
    info.type, info.linkname = kind, "/etc"
    refused(tmp_path, tar_of(tmp_path / "a.tar", ("run", b"x"), (info, b""), mode="w:"), why)


def test_a_file_is_never_written_through_a_link_of_the_same_archive(tmp_path: Path) -> None:
    info = tarfile.TarInfo("dir")
    info.type, info.linkname = tarfile.SYMTYPE, str(tmp_path)
    refused(tmp_path, tar_of(tmp_path / "a.tar", (info, b""), ("dir/evil", b"x")))


def test_a_sparse_file_in_the_newer_form_is_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("odd")
    info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.realsize": str(1 << 40)}
    refused(tmp_path, tar_of(tmp_path / "a.tar", (info, b"")), "sparse")


@pytest.mark.parametrize(
    ("mode", "why"), [(0o120777, "is a link"), (0o020666, "neither"), (0o010644, "neither"), (0o140755, "neither")]
)
def test_only_files_and_folders_come_out_of_a_zip(tmp_path: Path, mode: int, why: str) -> None:
    info = zipfile.ZipInfo("odd")
    info.create_system, info.external_attr = 3, mode << 16
    refused(tmp_path, zip_of(tmp_path / "a.zip", ("run", b"x"), (info, b"/etc/passwd")), why)


def test_modes_are_reduced_to_plain_ones(tmp_path: Path) -> None:
    info = tarfile.TarInfo("run")
    info.mode, info.uid, info.size = 0o6777, 1234, 1
    unpack(tar_of(tmp_path / "a.tar", (info, b"x"), ("other", b"y")), tmp_path / "out")
    assert (tmp_path / "out" / "run").stat().st_mode & 0o7777 == 0o755
    assert (tmp_path / "out" / "other").stat().st_mode & 0o7777 == 0o644


# A8: sizes


@pytest.mark.parametrize("make", [zip_of, tar_of])
def test_more_bytes_than_allowed_are_refused(tmp_path: Path, make: Callable[..., Path]) -> None:
    data = random.Random(1).randbytes(100_000) + bytes(4_900_000)  # shrinks, but not suspiciously
    refused(tmp_path, make(tmp_path / "archive", ("a", data), ("b", data)), "more than 8 MiB")


@pytest.mark.parametrize("make", [zip_of, tar_of])
def test_more_entries_than_allowed_are_refused(tmp_path: Path, make: Callable[..., Path]) -> None:
    refused(tmp_path, make(tmp_path / "archive", *((f"f{n}", b"") for n in range(51))), "more than 50")


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tar.xz", "a.tar.bz2"])
def test_a_tar_that_unpacks_to_suspiciously_much_is_refused(tmp_path: Path, name: str) -> None:
    archive = tar_of(tmp_path / name, ("zeros", bytes(6 * 1024 * 1024)), mode=MODES[name])
    refused(tmp_path, archive, "far more")


def test_a_zip_that_unpacks_to_suspiciously_much_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, zip_of(tmp_path / "a.zip", ("zeros", bytes(6 * 1024 * 1024))), "far more")


def test_a_zip_that_states_small_sizes_for_large_contents_is_refused(tmp_path: Path) -> None:
    archive = zip_of(tmp_path / "a.zip", ("zeros", bytes(6 * 1024 * 1024)))
    lied = archive.read_bytes().replace(struct.pack("<L", 6 * 1024 * 1024), struct.pack("<L", 10))
    archive.write_bytes(lied)
    refused(tmp_path, archive)


def test_a_zip_that_states_larger_sizes_than_it_has_is_refused(tmp_path: Path) -> None:
    archive = zip_of(tmp_path / "a.zip", ("text", b"x" * 1000))
    archive.write_bytes(archive.read_bytes().replace(struct.pack("<L", 1000), struct.pack("<L", 2000)))
    refused(tmp_path, archive)


def test_a_zip_that_says_it_is_too_much_is_refused_before_any_of_it_is_unpacked(tmp_path: Path) -> None:
    archive = zip_of(tmp_path / "a.zip", *((name, b"x" * 1000) for name in "abc"))
    data = archive.read_bytes()
    central = data.index(b"PK\x01\x02")
    stated = data[central:].replace(struct.pack("<L", 1000), struct.pack("<L", 3_000_000))
    archive.write_bytes(data[:central] + stated)
    refused(tmp_path, archive, "more than 8 MiB")


def test_a_zip_whose_wide_sizes_lie_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive, archive.open("a", "w", force_zip64=True) as file:
        file.write(b"x" * 1000)
    data = (tmp_path / "a.zip").read_bytes()
    central = data.index(b"PK\x01\x02")
    wide = data[:central] + data[central:].replace(struct.pack("<L", 1000), b"\xff\xff\xff\xff")
    (tmp_path / "a.zip").write_bytes(wide)
    refused(tmp_path, tmp_path / "a.zip")


def test_a_zip_whose_entries_share_their_bytes_is_refused(tmp_path: Path) -> None:
    """Each entry of the directory leads to the same content: a few bytes unpack to many files."""
    archive = zip_of(tmp_path / "a.zip", ("a", b"x" * 50_000), ("b", b"y" * 50_000))
    data = bytearray(archive.read_bytes())
    second = data.index(b"PK\x01\x02", data.index(b"PK\x01\x02") + 4)
    data[second + 42 : second + 46] = struct.pack("<L", 0)
    data[second + 46 : second + 47] = b"a"
    data[data.index(b"PK\x01\x02") + 46 : data.index(b"PK\x01\x02") + 47] = b"A"
    archive.write_bytes(data)
    refused(tmp_path, archive, "overlaps")


def test_a_zip_with_a_directory_of_millions_is_refused_before_it_is_read(tmp_path: Path) -> None:
    record = b"PK\x01\x02" + bytes(42)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 65535, 65535, 46 * 150_000, 4, 0)
    (tmp_path / "a.zip").write_bytes(b"PK\x03\x04" + record * 150_000 + end)
    refused(tmp_path, tmp_path / "a.zip", "far too many")


def test_a_tar_that_states_more_than_it_has_is_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("big")
    info.size = 7 * 1024 * 1024
    (tmp_path / "a.tar").write_bytes(info.tobuf() + b"x" * 512)
    refused(tmp_path, tmp_path / "a.tar", "ends too early")
    info.size = 1 << 50
    (tmp_path / "a.tar").write_bytes(info.tobuf() + b"x" * 512)
    refused(tmp_path, tmp_path / "a.tar", "more than 8 MiB")


@pytest.mark.parametrize("kind", [b"L", b"x", b"g"])
def test_a_tar_with_an_endless_name_is_refused_before_it_is_held_in_memory(tmp_path: Path, kind: bytes) -> None:
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = kind, 1 << 40
    (tmp_path / "a.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT) + b"x" * 5000)
    refused(tmp_path, tmp_path / "a.tar", "too long")


@pytest.mark.parametrize(
    "record",
    [
        b"9 path=a ",
        b"99 path=a\n",
        b"x path=a\n",
        b"0 path=a\n",
        b"10 path a\n",
        b"12 path=../\xff\n",
        b"11 path=../\n",
    ],
)
def test_attributes_that_cannot_be_read_or_hide_a_name_are_refused(tmp_path: Path, record: bytes) -> None:
    extra = tarfile.TarInfo("pax")
    extra.type, extra.size = b"x", len(record)
    file = tarfile.TarInfo("file")
    data = extra.tobuf() + record.ljust(512, b"\0") + file.tobuf() + bytes(1024)
    (tmp_path / "a.tar").write_bytes(data)
    refused(tmp_path, tmp_path / "a.tar")


def test_attributes_for_all_files_may_not_name_them(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(b"")
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.PAX_FORMAT, pax_headers={"path": "../evil"}) as archive:
        archive.addfile(tarfile.TarInfo("a"))
    refused(tmp_path, tmp_path / "a.tar", "all its files alike")


def test_a_tar_that_is_too_much_without_what_is_left_out_is_refused_too(tmp_path: Path) -> None:
    data = random.Random(1).randbytes(100_000) + bytes(4_900_000)
    refused(tmp_path, tar_of(tmp_path / "a.tgz", *((f"{n}/.DS_Store", data) for n in range(3))), "far more")


# A8: damage


def test_a_header_that_does_not_add_up_is_refused(tmp_path: Path) -> None:
    data = bytearray(tar_of(tmp_path / "a.tar", ("run", b"x"), mode="w:").read_bytes())
    data[0:3] = b"ran"
    (tmp_path / "a.tar").write_bytes(data)
    refused(tmp_path, tmp_path / "a.tar", "damaged")


def test_a_wrong_checksum_is_refused(tmp_path: Path) -> None:
    archive = zip_of(tmp_path / "a.zip", ("text", b"x" * 1000))
    crc = struct.pack("<L", zlib.crc32(b"x" * 1000))
    archive.write_bytes(archive.read_bytes().replace(crc, b"\1\2\3\4"))
    refused(tmp_path, archive)
    tar_of(tmp_path / "a.tar.gz", ("text", b"x" * 1000))
    data = bytearray((tmp_path / "a.tar.gz").read_bytes())
    data[-8:-4] = b"\1\2\3\4"
    (tmp_path / "a.tar.gz").write_bytes(data)
    refused(tmp_path, tmp_path / "a.tar.gz")


def test_an_encrypted_zip_is_refused(tmp_path: Path) -> None:
    archive = zip_of(tmp_path / "a.zip", ("text", b"x" * 10))
    data = bytearray(archive.read_bytes())
    for magic, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(magic) + at] |= 1
    archive.write_bytes(data)
    refused(tmp_path, archive, "encrypted")


def test_an_unusual_packing_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a", b"x")
    refused(tmp_path, tmp_path / "a.zip", "unusual")


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b", b"BZh9", b"\xfd7zXZ\0", b"text" * 400]
)
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    refused(tmp_path, tmp_path / "a")


def test_what_is_no_file_or_too_large_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, tmp_path)
    refused(tmp_path, tmp_path / "missing.zip")
    with (tmp_path / "large.zip").open("wb") as file:
        file.truncate(9 * 1024 * 1024)
    refused(tmp_path, tmp_path / "large.zip", "larger")


def example(kind: str) -> bytes:
    held = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("demo/run", b"run" * 30)
            archive.writestr("demo/lib/a.py", b"a = 1\n")
    else:
        with tarfile.open(fileobj=held, mode=kind, format=tarfile.PAX_FORMAT) as tar:  # type: ignore[call-overload]  # one of its modes
            for name in ("demo/run", "demo/ü"):
                info = tarfile.TarInfo(name)
                info.size = 600
                tar.addfile(info, io.BytesIO(b"x" * 600))
    return held.getvalue()


EXAMPLES = {kind: example(kind) for kind in ("zip", "w:", "w:gz", "w:xz", "w:bz2")}


@pytest.mark.parametrize("kind", EXAMPLES)
@patient
@given(data=st.data())
def test_a_damaged_archive_is_refused_or_unpacked_but_never_worse(
    tmp_path_factory: pytest.TempPathFactory, kind: str, data: st.DataObject
) -> None:
    content = bytearray(EXAMPLES[kind])
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    for _ in range(data.draw(st.integers(0, 3))):
        if content:
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    root = tmp_path_factory.mktemp("damaged")
    (root / "a").write_bytes(content)
    refusal = None
    try:
        unpack(root / "a", root / "out")
        read_tree(root / "out")
    except PackageError as error:
        refusal = error
    assert sorted(path.name for path in root.iterdir()) == (["a"] if refusal else ["a", "out"])
    assert not refusal or (refusal.hint and refusal.message.isprintable())
