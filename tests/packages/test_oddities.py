from pathlib import Path

import pytest

from hilt.packages.oddities import Oddity, oddities_of, of_content
from hilt.packages.trees import read_tree
from support.packages import extension


def found(directory: Path) -> tuple[Oddity, ...]:
    return oddities_of(directory, read_tree(directory))


def test_an_ordinary_extension_has_nothing_odd(tmp_path: Path) -> None:
    words = "Grüße, 日本語, שלום, नमस्ते, می\u200cخواهم"
    pictures = "❤\ufe0f 👨\u200d👩\u200d👧 1\ufe0f\u20e3 🏴\U000e0067\U000e0062\U000e007f"
    files = {"README.md": f"{words}\n{pictures}\n", "LICENSE": "MIT"}
    assert found(extension(tmp_path / "x", files=files)) == ()


# A33
@pytest.mark.parametrize(
    "hidden",
    [
        "\u202e",
        "\u2066",
        "\u200f",
        "\u200b",
        "\u200d",
        "\u2060",
        "\ufeff",
        "\u00ad",
        "\u3164",
        "\ufe0f",
        "\ufe01",
        "\U000e0101",
        "\U000e0041",
        "\u061c",
        "\u180e",
        "\u2028",
        "\U0001d173",
        "\U000e0fff",
    ],
)
def test_a_hidden_character_is_told_with_its_file_line_and_code(tmp_path: Path, hidden: str) -> None:
    text = f"#!/bin/sh\naccess = 1\nif access != 'user{hidden}': pass\n"
    [oddity] = found(extension(tmp_path / "x", files={"lib/check.py": text}))
    assert (oddity.file, oddity.line) == ("lib/check.py", 3)
    assert f"U+{ord(hidden):04X}" in oddity.what
    assert oddity.what.isprintable()


def test_text_hidden_in_selectors_behind_a_picture_is_told() -> None:
    payload = "".join(chr(0xFE00 + byte % 16) for byte in b"evil payload")
    assert of_content("a.js", f"eval(decode('❤{payload}'))".encode())
    assert of_content("a.js", ("❤" + "\U000e0150\U000e0160").encode())


def test_the_manifests_oddities_come_first(tmp_path: Path) -> None:
    root = extension(tmp_path / "x", description="x\u202ey", files={"a.py": "\u202e"})
    (root / "extension.json").write_bytes((root / "extension.json").read_bytes().replace(b"\\u202e", "\u202e".encode()))
    assert [oddity.file for oddity in found(root)] == ["extension.json", "a.py"]


def test_a_mark_at_the_front_of_a_file_is_not_odd() -> None:
    assert of_content("a.txt", b"\xef\xbb\xbftext") == []
    assert of_content("a.txt", b"text\xef\xbb\xbf") != []


@pytest.mark.parametrize(
    ("path", "content", "what"),
    [
        ("bin/tool", b"\x7fELF\x02\x01\x01\0\0", "binary form"),
        ("tool.exe", b"MZ\x90\0\x03", "binary form"),
        ("a.wasm", b"\0asm\1\0\0\0", "binary form"),
        ("id_ed25519", b"x", "private key"),
        (".env", b"X=1", "secrets"),
        ("notes.txt", b"-----BEGIN OPENSSH PRIVATE KEY-----\nabc", "private key"),
        ("data.bin", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "not fetched"),
        (".gitmodules", b'[submodule "x"]', "submodules"),
        ("package.json", b'{"scripts": {"postinstall": "node evil.js", "test": "x"}}', "postinstall"),
        ("dist/a.min.js", b"x" * 6000, "a line of 6000 characters"),
    ],
)
def test_what_is_worth_knowing_is_told(path: str, content: bytes, what: str) -> None:
    [oddity] = of_content(path, content)
    assert what in oddity.what and oddity.file == path


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\0", b'{"scripts": []}', b"[" * 100_000, b"null", b"{"])
def test_broken_content_is_no_reason_to_fail(content: bytes) -> None:
    assert isinstance(of_content("package.json", content), list)


def test_a_name_in_mixed_alphabets_is_told_and_a_large_file_too(tmp_path: Path) -> None:
    root = extension(tmp_path / "x", files={"p\u0430y.py": "x", "größe.txt": "x"})
    with (root / "big.bin").open("wb") as file:
        file.truncate(30 * 1024 * 1024)
    told = {oddity.file: oddity.what for oddity in found(root)}
    assert "different alphabets" in told["p\u0430y.py"]
    assert "not ASCII" in told["größe.txt"]
    assert "30 MiB" in told["big.bin"]


def test_a_file_that_is_looked_at_in_part_only_is_told(tmp_path: Path) -> None:
    root = extension(tmp_path / "x", files={"long.md": "word\n" * 500_000 + "\u202e", "short.md": "word\n"})
    assert [(oddity.file, "first 2 MiB" in oddity.what) for oddity in found(root)] == [("long.md", True)]  # A33


def test_the_list_is_bounded(tmp_path: Path) -> None:
    files = {f"f{number}.py": "\u202e\n" * 50 for number in range(60)}
    told = found(extension(tmp_path / "x", files=files))
    assert len(told) == 101 and "looking ended" in told[-1].what
    assert len([oddity for oddity in told if oddity.file == "f0.py"]) == 5
