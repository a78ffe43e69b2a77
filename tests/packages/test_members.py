import json
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.errors import ManifestError
from hilt.packages.manifest import Manifest, is_name, read_manifest, resolve_exec
from hilt.packages.members import read_file, yaml_members
from support.properties import patient

SOUND = "name: demo\nversion: 1.0\nruntime: python\nentry: main.py\n"


def put(directory: Path, content: str | bytes, name: str = "manifest.yaml") -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return directory


def complaint(directory: Path) -> ManifestError:
    with pytest.raises(ManifestError) as caught:
        read_manifest(directory)
    assert caught.value.hint
    assert caught.value.message.isprintable()
    return caught.value


def members(text: str) -> dict[str, object]:
    return dict(yaml_members(Path("manifest.yaml"), text.encode(), "an example"))


# What YAML means here


def test_a_yaml_manifest_is_read_as_that_of_the_other_dialect(tmp_path: Path) -> None:
    manifest = read_manifest(put(tmp_path, SOUND))
    expected = Manifest("demo", "1.0", exec="python", dialect="jsonrpc", entry="main.py", tool_timeout_ms=3_600_000)
    assert manifest == expected


def test_beside_an_extension_json_the_yaml_does_not_count(tmp_path: Path) -> None:
    put(tmp_path, SOUND)
    put(tmp_path, '{"name": "other", "exec": "./run"}', "extension.json")
    assert (read_manifest(tmp_path).name, read_manifest(tmp_path).dialect) == ("other", "frames")


@pytest.mark.parametrize(
    ("runtime", "command"),
    [
        ("bun", ("{bin}/bun", "run", "{here}/main")),
        ("node", ("{bin}/node", "{here}/main")),
        ("deno", ("{bin}/deno", "run", "--allow-all", "{here}/main")),
        ("python", ("{bin}/python3", "{here}/main")),
        ("./own", ("{here}/own", "{here}/main")),
        ("/opt/own", ("/opt/own", "{here}/main")),
    ],
)
def test_each_runtime_has_its_command_line(tmp_path: Path, runtime: str, command: tuple[str, ...]) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for program in ("bun", "node", "deno", "python3"):
        (programs / program).touch(0o755)
    here = put(tmp_path / "here", f"name: demo\nruntime: {runtime}\nentry: main\n")
    found = resolve_exec(read_manifest(here), here, str(programs))
    assert found == tuple(word.format(bin=programs, here=here) for word in command)


def test_words_that_only_look_like_something_else_stay_words() -> None:
    text = "a: 1.0\nb: 2026-01-01\nc: yes\nd: 1e3\ne: 0x1f\nf: 12:30:00\ng: =\nh: <<\n"
    assert set(map(type, members(text).values())) == {str}
    assert members("a: ~\nb:\nc: true\nd: 7\n") == {"a": None, "b": None, "c": True, "d": 7}


def test_a_number_is_taken_for_a_version_and_nothing_else_is(tmp_path: Path) -> None:
    assert read_manifest(put(tmp_path, "name: demo\nversion: 2\nruntime: python\n")).version == "2"
    assert '"version" must be a string, not a list' in str(complaint(put(tmp_path, "name: a\nversion: [2]\n")))


def test_what_is_missing_or_wrong_is_named_with_its_field_and_what_to_write(tmp_path: Path) -> None:
    error = complaint(put(tmp_path, "name: a/b\npriority: high\n"))
    assert all(f'"{field}"' in error.message for field in ("name", "priority", "runtime"))
    assert str(tmp_path / "manifest.yaml") in error.message and '"name": "a-b"' in error.hint


# What a stranger may put there


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: &x [1]\nb: *x\n", "alias"),
        ("a: &x {k: 1}\nb:\n  !!merge <<: [*x, *x]\n", "tag"),
        ("a: !!python/object/apply:os.system ['touch /tmp/was-here']\n", "tag"),
        ("a: !!python/name:os.system\n", "tag"),
        ("a: !!timestamp x\n", "tag"),
        ("a: !!bool x\n", "tag"),
        ("a: !!int ''\n", "tag"),
        ("!!omap a: b\n", "tag"),
        ("name: safe\nruntime: python\nname: other\n", "name is there twice in line 3"),
        ("guard:\n  required: true\n  required: false\n", "required is there twice in line 3"),
        ('a: 1\n"a": 2\n', "a is there twice"),
        ("1: a\n1: b\n", "1 is there twice"),
        ("? [a]\n: b\n", "unhashable"),
        ("a: b: c\n", "in line 1"),
        ("a: 1\n---\nb: 2\n", "another document"),
        ("a: " + "[" * 60_000, "nested too deeply"),
        ("a: " + "{a: " * 15_000, "nested too deeply"),
        ("- a\n- b\n", "must be a YAML mapping"),
        ("", "must be a YAML mapping"),
        ("just words\n", "must be a YAML mapping"),
        ("a: \x07\n", "special characters"),
        ("a: \x1b[2J\n", "special characters"),
    ],
)
def test_yaml_that_asks_for_more_than_data_is_refused_and_says_where(tmp_path: Path, text: str, said: str) -> None:
    error = complaint(put(tmp_path, text))
    assert said in error.message and "manifest.yaml" in error.message


@pytest.mark.parametrize("merged", ["", "!!merge "])
def test_a_few_lines_that_stand_for_more_than_a_memory_holds_are_refused(tmp_path: Path, merged: str) -> None:
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {{{merged}<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 12)]
    message = complaint(put(tmp_path, "\n".join(lines))).message
    assert ("a tag" if merged else "an alias") in message and "in line 2" in message


@pytest.mark.parametrize(("name", "largest"), [("extension.json", 1024 * 1024), ("manifest.yaml", 64 * 1024)])
def test_a_manifest_is_read_up_to_its_limit_and_not_a_byte_more(tmp_path: Path, name: str, largest: int) -> None:
    text = '{"name": "demo", "exec": "x"}' if name == "extension.json" else "name: demo\nruntime: x\n"
    assert read_manifest(put(tmp_path, text.ljust(largest), name)).name == "demo"
    error = complaint(put(tmp_path, text.ljust(largest + 1), name))
    assert f"larger than {largest} bytes" in error.message


def test_text_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    assert "UTF-8" in complaint(put(tmp_path, b"name: \xff\n")).message
    assert "UTF-8" in complaint(put(tmp_path, "name: demo\n".encode("utf-16"))).message


def test_what_is_no_regular_file_is_not_even_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "manifest.yaml")
    assert "is not a regular file" in complaint(tmp_path).message
    with pytest.raises(ManifestError, match="is not a regular file"):
        read_file(Path("/dev/zero"), 10, "one")


def test_of_json_keys_that_are_there_twice_the_last_counts_as_in_its_reference_host(tmp_path: Path) -> None:
    put(tmp_path, '{"name": "demo", "exec": "./first", "exec": "./last"}', "extension.json")
    assert read_manifest(tmp_path).exec == "./last"


@patient
@given(text=st.text() | st.text(alphabet="abn:!&*<>{}[]-?|'\"#%@, \n\t~0123456789"))
def test_whatever_the_text_it_is_members_or_a_manifest_error(text: str) -> None:
    try:
        found = members(text)
    except (ManifestError, UnicodeEncodeError):
        return
    assert all(isinstance(key, str) for key in found)


ATTEMPTS = ("../../x", "..", ".", "", "/", "a/b", "a\\b", "a\0b", "~", "-rf", "con.", "x" * 65, "x" * 300, "ü", "a b")
ODD = ("\u202egnp", "a\nb", "$(id)", "%2e%2e", "\ud800")


@patient
@given(name=st.sampled_from((*ATTEMPTS, *ODD)) | st.text(max_size=300))
def test_no_name_becomes_part_of_a_path_unless_it_fits_the_grammar(
    tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    directory = tmp_path_factory.mktemp("named")
    try:
        content = msgspec.json.encode({"name": name, "exec": "./run"})
    except UnicodeEncodeError:
        return
    put(directory, content, "extension.json")
    if is_name(name):
        assert read_manifest(directory).name == name
        assert (directory / f"ext-{name}.log").parent == directory
        (directory / name).touch()
        assert sorted(os.listdir(directory)) == sorted({"extension.json", name})
    else:
        assert '"name"' in complaint(directory).message


@pytest.mark.parametrize("name", ATTEMPTS)
def test_a_name_that_leads_elsewhere_is_refused_in_either_manifest(tmp_path: Path, name: str) -> None:
    put(tmp_path / "json", json.dumps({"name": name, "exec": "./run"}), "extension.json")
    put(tmp_path / "yaml", f"name: {json.dumps(name)}\nruntime: python\n")
    for kind in ("json", "yaml"):
        assert '"name"' in complaint(tmp_path / kind).message
