import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.errors import ManifestError
from hilt.packages.manifest import Guard, Limits, Manifest, as_name, is_name, read_manifest, resolve_exec
from support.properties import patient

GRAMMAR = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
FIELDS = (*Manifest.__struct_fields__, *Guard.__struct_fields__, "Exec", "NAME")


def put(directory: Path, content: object) -> Path:
    """Write a manifest; bytes as they are, anything else as JSON."""
    directory.mkdir(parents=True, exist_ok=True)
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    (directory / "extension.json").write_bytes(data)
    return directory


def refusal(directory: Path) -> ManifestError:
    with pytest.raises(ManifestError) as caught:
        read_manifest(directory)
    error = caught.value
    assert str(directory / "extension.json") in error.message
    assert error.hint and "\n" not in error.message + error.hint
    return error


def complaint(directory: Path, **fields: Any) -> str:
    """What is said about a manifest that is right but for these fields, without the name of the file."""
    error = refusal(put(directory, {"name": "demo", "exec": "./run"} | fields))
    return error.message.removeprefix(f"{directory / 'extension.json'}: ")


def test_every_field_is_read(tmp_path: Path) -> None:
    everything = {
        "name": "demo",
        "version": "1.2",
        "exec": "node",
        "args": ["a", ""],
        "language": "js",
        "description": "Does things",
        "enabled": False,
        "guard": {"on_failure": "ask", "timeout_ms": 300, "required": True},
        "priority": -3,
        "start_timeout_ms": 100,
        "tool_timeout_ms": 3_600_000,
        "stop_grace_ms": 0,
        "data_dir": "separate",
        "skills": ["./skills"],
        "limits": {"memory_mb": 16, "processes": 9, "open_files": 99, "file_size_mb": 2, "cpu_seconds": 60},
    }
    assert read_manifest(put(tmp_path, everything)) == Manifest(
        "demo",
        "1.2",
        "node",
        ("a", ""),
        "js",
        "Does things",
        False,
        Guard("ask", 300, True),
        -3,
        100,
        3_600_000,
        0,
        "separate",
        ("./skills",),
        Limits(16, 9, 99, 2, 60),
    )


def test_what_nobody_knows_is_passed_over_however_odd(tmp_path: Path) -> None:
    content = b'{"name": "demo", "exec": "x", "rights": 5, "odd": {"a": [1e999, 1' + b"0" * 9999 + b"]}}"
    assert read_manifest(put(tmp_path, content)) == Manifest("demo", exec="x")


def test_what_is_not_said_or_null_has_its_default(tmp_path: Path) -> None:
    bare = Manifest("demo", exec="./run")
    assert (bare.enabled, bare.priority, bare.data_dir, bare.limits) == (True, 0, "shared", Limits())
    assert (bare.start_timeout_ms, bare.tool_timeout_ms, bare.stop_grace_ms) == (10_000, 60_000, 2000)
    assert read_manifest(put(tmp_path, {"name": "demo", "exec": "./run"})) == bare
    nulls = dict.fromkeys(Manifest.__struct_fields__)
    assert read_manifest(put(tmp_path, nulls | {"name": "demo", "exec": "./run"})) == bare
    guard = read_manifest(put(tmp_path, {"name": "demo", "exec": "./run", "guard": {"on_failure": None}})).guard
    assert guard == Guard(None, 5000, False)


def test_keys_match_in_any_case_and_the_exact_spelling_wins(tmp_path: Path) -> None:
    content = {"NAME": "loud", "Exec": "./a", "exec": "./b", "EXEC": "./c", "Guard": {"Timeout_MS": 700}}
    manifest = read_manifest(put(tmp_path, content))
    assert (manifest.name, manifest.exec) == ("loud", "./b")
    assert manifest.guard == Guard(None, 700)


def test_a_byte_order_mark_is_no_obstacle(tmp_path: Path) -> None:
    assert read_manifest(put(tmp_path, b'\xef\xbb\xbf{"name":"demo","exec":"x"}')).name == "demo"


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("args", "x", '"args" must be a list of strings, not a string'),
        ("args", ["x", 1], '"args" must be a list of strings, not a number in place 2'),
        ("args", ["a\0b"], '"args" must be a list of strings, not a string with a NUL in place 1'),
        ("exec", 5, '"exec" must be a string, not a number'),
        ("exec", "a\0b", '"exec" must be a string, not a string with a NUL'),
        ("version", 1.5, '"version" must be a string, not a number'),
        ("enabled", "false", '"enabled" must be true or false, not a string'),
        ("enabled", 0, '"enabled" must be true or false, not a number'),
        ("guard", True, '"guard" must be an object, not true'),
        ("guard", {"timeout_ms": "5s"}, "guard.timeout_ms must be a whole number from 100 to 60000, not a string"),
        ("guard", {"timeout_ms": 99}, "guard.timeout_ms must be a whole number from 100 to 60000, not 99"),
        ("guard", {"on_failure": "no"}, 'guard.on_failure must be one of "block", "ask", "allow", not "no"'),
        ("guard", {"required": []}, "guard.required must be true or false, not a list"),
        ("priority", True, '"priority" must be a whole number from -1000000 to 1000000, not true'),
        ("priority", 1.0, '"priority" must be a whole number from -1000000 to 1000000, not 1.0'),
        ("start_timeout_ms", 99, '"start_timeout_ms" must be a whole number from 100 to 120000, not 99'),
        ("start_timeout_ms", 120_001, '"start_timeout_ms" must be a whole number from 100 to 120000, not 120001'),
        ("tool_timeout_ms", 99, '"tool_timeout_ms" must be a whole number from 100 to 3600000, not 99'),
        ("tool_timeout_ms", 3_600_001, '"tool_timeout_ms" must be a whole number from 100 to 3600000, not 3600001'),
        ("stop_grace_ms", -1, '"stop_grace_ms" must be a whole number from 0 to 10000, not -1'),
        ("stop_grace_ms", 10_001, '"stop_grace_ms" must be a whole number from 0 to 10000, not 10001'),
        ("data_dir", "mine", '"data_dir" must be one of "shared", "separate", not "mine"'),
        ("skills", {}, '"skills" must be a list of strings, not an object'),
        ("limits", 5, '"limits" must be an object, not a number'),
        ("limits", {"memory_mb": 15}, "limits.memory_mb must be a whole number from 16 to 1000000, not 15"),
        ("limits", {"open_files": "all"}, "limits.open_files must be a whole number from 16 to 1000000, not a string"),
    ],
)
def test_a_wrong_field_is_named_with_what_was_expected(tmp_path: Path, field: str, value: object, said: str) -> None:
    assert complaint(tmp_path, **{field: value}) == said


def test_all_wrong_fields_are_said_at_once_and_whose_they_are(tmp_path: Path) -> None:
    error = refusal(put(tmp_path, {"name": "demo", "exec": 1, "args": 2, "priority": "x"}))
    assert [error.message.count(f'"{field}"') for field in ("exec", "args", "priority", "name")] == [1, 1, 1, 0]
    assert error.extension == "demo"


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "a/b", "../a", "-a", ".a", "_a", "a.", "a b", "a\nb", "ä", "²", "a\x1b[2J", "x" * 65, "x" * 5000],
)
def test_a_name_that_could_not_be_a_file_name_is_refused(tmp_path: Path, name: str) -> None:
    error = refusal(put(tmp_path, {"name": name, "exec": "x"}))
    assert '"name"' in error.message and error.message.isprintable()
    assert not name or "[A-Za-z0-9][A-Za-z0-9._-]{0,63}" in error.message
    assert len(error.message) < 500
    assert error.extension == ""


@pytest.mark.parametrize("name", ["a", "7", "A.b_c-", "x" * 64])
def test_a_name_that_fits_the_grammar_is_taken(tmp_path: Path, name: str) -> None:
    assert read_manifest(put(tmp_path, {"name": name, "exec": "x"})).name == name


def test_a_missing_name_is_said_and_one_is_suggested(tmp_path: Path) -> None:
    error = refusal(put(tmp_path / "my demo", {"exec": "x"}))
    assert '"name" is missing' in error.message
    assert "my-demo" in error.hint


def test_exec_is_needed_unless_there_are_skills_or_a_theme(tmp_path: Path) -> None:
    assert complaint(tmp_path, exec="") == '"exec" is missing'
    assert complaint(tmp_path, exec=None, skills=[]) == '"exec" is missing'
    assert read_manifest(put(tmp_path, {"name": "demo", "skills": ["s"]})).exec == ""
    for theme in ("theme.json", "themes/theme.json"):
        directory = put(tmp_path / theme.replace("/", "-"), {"name": "demo"})
        (directory / theme).parent.mkdir(exist_ok=True)
        (directory / theme).write_text("{}")
        assert read_manifest(directory).exec == ""


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is not JSON"),
        (b"nonsense", "is not JSON"),
        (b'{\n"name": "demo",\n"exec": "x",\n}', "is not JSON: trailing comma in object in line 4"),
        (b'{"name": NaN}', "is not JSON"),
        (b'{"name": "demo", "exec": "x", "args": ' + b"[" * 100_000, "is not JSON: it is nested too deeply"),
        (b'["name"]', "must be a JSON object"),
        (b"null", "must be a JSON object"),
        ('{"name": "demo"}'.encode("utf-16"), "is not UTF-8"),
        (b'{"name": "demo", "exec": "x", "description": "\xff"}', "is not UTF-8"),
    ],
)
def test_a_file_that_is_no_json_object_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    assert said in refusal(put(tmp_path, content)).message


@pytest.mark.parametrize("number", ["1" + "0" * 30, "1" + "0" * 4299, "1" + "0" * 5000, "1e999", "-1e999"])
def test_a_number_beyond_all_bounds_is_refused_in_few_words(tmp_path: Path, number: str) -> None:
    error = refusal(put(tmp_path, b'{"name":"demo","exec":"x","priority":%b}' % number.encode()))
    assert '"priority"' in error.message and len(error.message) < 400


def test_a_file_of_more_than_a_mebibyte_is_refused(tmp_path: Path) -> None:
    head = b'{"name":"demo","exec":"x"}'
    put(tmp_path, head + b" " * (1024 * 1024 - len(head)))
    assert read_manifest(tmp_path).name == "demo"
    put(tmp_path, head + b" " * (1024 * 1024 - len(head) + 1))
    assert "is larger than 1048576 bytes" in refusal(tmp_path).message


@pytest.mark.timeout(10)
def test_what_is_no_regular_file_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "extension.json")
    assert "is not a regular file" in refusal(tmp_path).message
    (tmp_path / "folder" / "extension.json").mkdir(parents=True)
    assert "is not a regular file" in refusal(tmp_path / "folder").message


def test_a_file_that_is_not_there_or_cannot_be_reached_is_said(tmp_path: Path) -> None:
    assert "there is no such file" in refusal(tmp_path).message
    (tmp_path / "extension.json").symlink_to("extension.json")
    assert "cannot be read" in refusal(tmp_path).message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3),
    max_leaves=6,
)
NEARLY_RIGHT = st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=8).map(
    lambda fields: json.dumps({"name": "demo", "exec": "./x"} | fields).encode(errors="surrogatepass")
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("manifest")


@patient
@given(st.binary() | NEARLY_RIGHT)
def test_whatever_the_file_holds_it_is_a_sound_manifest_or_a_manifest_error(folder: Path, content: bytes) -> None:
    put(folder, content)
    try:
        manifest = read_manifest(folder)
    except ManifestError:
        error = refusal(folder)
        assert error.message.isprintable()
        assert not error.extension or is_name(error.extension)
    else:
        assert is_name(manifest.name)
        assert all(type(word) is str and "\0" not in word for word in (manifest.exec, *manifest.args))
        assert 100 <= manifest.start_timeout_ms <= 120_000


@patient
@given(st.text() | st.text("aZ9._-", min_size=60, max_size=70) | st.text("a._-"))
def test_names_are_what_the_grammar_says_and_any_text_is_made_one_or_nothing(text: str) -> None:
    assert is_name(text) == bool(GRAMMAR.match(text) and not text.endswith("."))
    fitted = as_name(text)
    assert not fitted or is_name(fitted)
    assert not is_name(text) or fitted == text


def program(path: Path, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    ("written", "program"),
    [("/bin/sh", "/bin/sh"), ("./run", "{}/run"), ("../run", "{}/../run"), ("bin/run", "{}/bin/run"), ("..", "{}/..")],
)
def test_a_path_is_taken_from_the_directory_and_not_looked_up(tmp_path: Path, written: str, program: str) -> None:
    argv = resolve_exec(Manifest("demo", exec=written, args=("a", "b")), tmp_path, "")
    assert argv == (program.format(tmp_path), "a", "b")


def test_a_bare_word_is_looked_up_on_the_path(tmp_path: Path) -> None:
    program(tmp_path / "first" / "tool", 0o644)
    (tmp_path / "second" / "tool").mkdir(parents=True)
    wanted = program(tmp_path / "third" / "tool")
    program(tmp_path / "fourth" / "tool")
    path = os.pathsep.join(str(tmp_path / name) for name in ("none", "first", "second", "third", "fourth"))
    assert resolve_exec(Manifest("demo", exec="tool", args=("-x",)), tmp_path, path) == (str(wanted), "-x")


@pytest.mark.parametrize("word", ["no-such-tool", "x" * 5000])
def test_a_bare_word_that_is_not_on_the_path_is_named(tmp_path: Path, word: str) -> None:
    program(tmp_path / "no-such-tool")  # beside the manifest, but exec does not say ./
    with pytest.raises(ManifestError, match="is not on PATH") as caught:
        resolve_exec(Manifest("demo", exec=word), tmp_path, f"{tmp_path / 'bin'}::")
    assert word[:80] in caught.value.message and str(tmp_path / "extension.json") in caught.value.message
    assert caught.value.hint.startswith("install ") and len(caught.value.hint) < 300
    assert caught.value.extension == "demo"


@pytest.mark.parametrize("word", ["ruby", "x" * 5000])
def test_a_runtime_that_is_on_the_path_only_is_named_with_what_there_is_instead(tmp_path: Path, word: str) -> None:
    (tmp_path / "manifest.yaml").write_text(f"name: demo\nruntime: {word}\nentry: main.rb\n")
    manifest = read_manifest(tmp_path)
    with pytest.raises(ManifestError, match="is neither one of bun, node, deno, python nor a file beside it") as caught:
        resolve_exec(manifest, tmp_path, str(program(tmp_path / "bin" / "ruby").parent))
    assert str(tmp_path / "manifest.yaml") in caught.value.message and word[:80] in caught.value.message
    assert "by its path" in caught.value.hint and len(caught.value.hint) < 300
    program(tmp_path / "ruby")
    if word == "ruby":
        assert resolve_exec(manifest, tmp_path, "") == (str(tmp_path / "ruby"), str(tmp_path / "main.rb"))


def test_relative_entries_of_the_path_find_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin" / "tool")
    monkeypatch.chdir(tmp_path / "bin")
    with pytest.raises(ManifestError, match="tool is not on PATH"):
        resolve_exec(Manifest("demo", exec="tool"), tmp_path, os.pathsep.join(("", ".", "../bin")))


def test_importing_discovery_loads_nothing_costly() -> None:
    code = (
        "import os, pathlib, msgspec, sys; before = set(sys.modules); import hilt.packages.discovery;"
        "print(*sorted(set(sys.modules) - before))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    # `resource` comes with the limits of a process and takes 0.3 ms.
    assert [name for name in loaded if not name.startswith("hilt") and name != "resource"] == []


@pytest.mark.parametrize(("said", "milliseconds"), [("", 3_600_000), ("tool_timeout_ms: 500", 500)])
def test_a_tool_of_the_jsonrpc_dialect_has_an_hour_unless_its_manifest_says_otherwise(
    tmp_path: Path, said: str, milliseconds: int
) -> None:
    (tmp_path / "manifest.yaml").write_text(f"name: x\nruntime: python\nentry: main.py\n{said}\n")
    assert read_manifest(tmp_path).tool_timeout_ms == milliseconds
