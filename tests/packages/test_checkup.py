import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from hilt.packages.checkup import Finding, checkup, worst
from hilt.packages.scripts.programs import interpreter, language_of

COMPLETE = {"version": "1", "description": "Does things", "permissions": []}


def extension(directory: Path, program: str | bytes = "#!/bin/sh\n", mode: int = 0o755, **fields: object) -> Path:
    """A directory in which nothing is wrong, but for what the arguments say."""
    directory.mkdir(mode=0o755)
    manifest = {"name": directory.name, "exec": "./run"} | COMPLETE | fields
    (directory / "extension.json").write_text(json.dumps(manifest))
    (directory / "run").write_bytes(program if isinstance(program, bytes) else program.encode())
    (directory / "run").chmod(mode)
    return directory


def found(place: Path, check: str, path: str = "/usr/bin:/bin") -> list[Finding]:
    return [finding for finding in checkup(place, path) if finding.check == check]


def only(place: Path, check: str, path: str = "/usr/bin:/bin") -> Finding:
    (finding,) = found(place, check, path)
    return finding


def test_nothing_is_said_against_an_extension_in_order(tmp_path: Path) -> None:
    findings = checkup(extension(tmp_path / "demo"), "/usr/bin:/bin")

    assert [(finding.level, finding.check) for finding in findings] == [
        ("ok", "manifest"),
        ("ok", "program"),
        ("info", "size"),
    ]
    assert re.fullmatch(r"2 files and directories, \d+ bytes", findings[2].message)
    assert worst(findings) == "info"


def test_what_is_wrong_with_a_manifest_is_said_as_when_it_is_loaded(tmp_path: Path) -> None:
    finding = only(extension(tmp_path / "demo", priority="high"), "manifest")

    assert finding.level == "error" and '"priority" must be a whole number' in finding.message and finding.hint
    assert worst((finding, Finding("ok", "x", ""))) == "error"


def test_a_directory_without_a_manifest_is_an_error(tmp_path: Path) -> None:
    assert "extension.json: there is no such file" in only(tmp_path, "manifest").message


@pytest.mark.parametrize(
    ("field", "meant"),
    [
        ("permisions", "permissions"),
        ("Guards", "guard"),
        ("start_timeout", "start_timeout_ms"),
        ("desciption", "description"),
    ],
)
def test_a_field_that_looks_like_another_is_pointed_out(tmp_path: Path, field: str, meant: str) -> None:
    strange: dict[str, Any] = {field: None}
    finding = only(extension(tmp_path / "demo", **strange), "fields")

    assert finding.level == "warn" and f'"{field}"' in finding.message
    assert finding.hint == f'did you mean "{meant}"?'


def test_a_misspelt_field_is_pointed_out_even_where_the_manifest_fails_for_it(tmp_path: Path) -> None:
    place = extension(tmp_path / "demo")
    (place / "extension.json").write_text('{"name": "demo", "exce": "./run"}')

    assert [finding.check for finding in checkup(place, "")][:2] == ["manifest", "fields"]
    assert only(place, "fields").hint == 'did you mean "exec"?'


def test_fields_within_fields_are_looked_at(tmp_path: Path) -> None:
    place = extension(tmp_path / "demo", guard={"on_failures": "ask"}, limits={"memory": 16})

    assert [finding.hint for finding in found(place, "fields")] == [
        'did you mean "guard.on_failure"?',
        'did you mean "limits.memory_mb"?',
    ]


def test_the_fields_of_other_hosts_are_passed_over_with_a_word(tmp_path: Path) -> None:
    finding = only(extension(tmp_path / "demo", homepage="x", EXEC="./run"), "fields")

    assert (finding.level, finding.hint) == ("info", "") and '"homepage"' in finding.message


def test_a_yaml_manifest_is_looked_at_by_its_own_fields(tmp_path: Path) -> None:
    (tmp_path / "manifest.yaml").write_text("name: demo\nruntime: ./run\nentri: x\nversion: 1\n")
    (tmp_path / "run").write_text("#!/bin/sh\n")
    (tmp_path / "run").chmod(0o755)

    assert only(tmp_path, "fields").hint == 'did you mean "entry"?'
    assert only(tmp_path, "program").level == "ok"
    assert not found(tmp_path, "dialect")


@pytest.mark.parametrize(
    ("fields", "check", "words"),
    [
        ({"version": ""}, "version", "it has no version"),
        ({"description": ""}, "description", "it has no description"),
        ({"enabled": False}, "enabled", "it is disabled"),
        ({"name": "other"}, "name", "its name is other, and its directory is demo"),
        ({"permissions": None}, "permissions", "asks for all that you may do"),
    ],
)
def test_what_is_worth_knowing_is_said(tmp_path: Path, fields: dict[str, Any], check: str, words: str) -> None:
    finding = only(extension(tmp_path / "demo", **fields), check)

    assert finding.level == "info" and words in finding.message and finding.hint


@pytest.mark.parametrize(
    ("program", "mode", "check", "words"),
    [
        ("#!/bin/sh\n", 0o644, "executable", "is not executable"),
        ("#!/bin/sh\r\necho\r\n", 0o755, "shebang", "lines end as on Windows"),
        ("\ufeff#!/bin/sh\n", 0o755, "shebang", "byte order mark"),
        ("#!\n", 0o755, "shebang", "its #! line is empty"),
        ("#! /no/such/thing -x\n", 0o755, "shebang", "interpreter /no/such/thing does not exist"),
        ("#!bin/sh\n", 0o755, "shebang", "interpreter bin/sh is found only from some directories"),
        ("#!/usr/bin/env nothing\n", 0o755, "shebang", "interpreter nothing is not on PATH"),
        ("#!/usr/bin/env -S nothing -x\n", 0o755, "shebang", "interpreter nothing is not on PATH"),
        ("#!/usr/bin/env -S A=1 -i nothing -x\n", 0o755, "shebang", "interpreter nothing is not on PATH"),
        ("echo\n", 0o755, "format", "neither a program nor begins with #!"),
        ("", 0o755, "format", "neither a program nor begins with #!"),
    ],
)
def test_what_would_keep_a_program_from_running_is_an_error(
    tmp_path: Path, program: str, mode: int, check: str, words: str
) -> None:
    place = extension(tmp_path / "demo", program, mode)
    finding = only(place, check)

    assert finding.level == "error" and words in finding.message and str(place / "run") in finding.message
    assert finding.hint and not found(place, "program")


def test_a_program_for_another_processor_is_an_error(tmp_path: Path) -> None:
    head = bytearray(Path("/proc/self/exe").read_bytes()[:64])
    head[18] ^= 0x55

    assert "another kind of processor" in only(extension(tmp_path / "demo", bytes(head)), "format").message


def test_the_system_is_asked_about_programs_that_do_run(tmp_path: Path) -> None:
    binary = Path("/bin/true").read_bytes()

    assert only(extension(tmp_path / "demo", binary), "program").level == "ok"
    assert only(extension(tmp_path / "other", "#!/usr/bin/env -S sh -e\n"), "program").level == "ok"


def test_a_missing_program_and_a_directory_in_its_place_are_errors(tmp_path: Path) -> None:
    assert "No such file" in only(extension(tmp_path / "demo", exec="./gone"), "program").message
    assert "is not a file" in only(extension(tmp_path / "other", exec="./"), "program").message


def test_a_runtime_is_named_with_what_it_really_is(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python3.99").write_text("#!/bin/sh\n")
    (tmp_path / "bin/python3.99").chmod(0o755)
    (tmp_path / "bin/python3").symlink_to("python3.99")
    place = extension(tmp_path / "demo", exec="python3", args=["-u", "run.py"])
    (place / "run.py").touch()
    path = str(tmp_path / "bin")

    assert only(place, "program", path).message == f"it is run by {path}/python3, which is {path}/python3.99"
    assert "python3 is not on PATH" in only(place, "program", "").message
    (place / "run.py").unlink()
    assert "run.py: there is no such file" in found(place, "program", path)[1].message


def test_a_program_outside_of_the_directory_is_warned_about(tmp_path: Path) -> None:
    inside = extension(tmp_path / "demo")
    outside = extension(tmp_path / "other", exec="../demo/run")
    linked = extension(tmp_path / "linked")
    (linked / "run").unlink()
    (linked / "run").symlink_to(inside / "run")

    assert [finding.level for finding in found(outside, "program")] == ["ok", "warn"]
    assert [finding.level for finding in found(linked, "program")] == ["ok", "warn"]


@pytest.mark.parametrize("entry", [".", "run", "lib", "lib/deep"])
def test_what_everybody_can_write_is_an_error(tmp_path: Path, entry: str) -> None:
    place = extension(tmp_path / "demo")
    (place / "lib").mkdir()
    (place / "lib/deep").touch()
    (place / "link").symlink_to("run")  # the mode of a link says nothing
    (place / entry).chmod((place / entry).stat().st_mode | 0o002)

    finding = only(place, "rights")
    assert finding.level == "error" and finding.hint == f"chmod o-w {place / entry}"


def test_a_large_tree_is_warned_about_and_not_walked_to_its_end(tmp_path: Path) -> None:
    place = extension(tmp_path / "demo")
    with (place / "large").open("wb") as file:
        file.truncate(101 * 1024 * 1024)
    assert only(place, "size").level == "warn" and "101 MiB" in only(place, "size").message

    for number in range(10_001):
        os.symlink("run", place / str(number))
    assert "more than 10000 files" in only(place, "size").message


def test_what_has_nothing_to_start_is_in_order(tmp_path: Path) -> None:
    (tmp_path / "extension.json").write_text('{"name": "demo", "skills": ["./skills"]}')

    assert "nothing to start" in only(tmp_path, "program").message


def script(file: Path, text: str, mode: int = 0o644) -> Path:
    file.write_text(text)
    file.chmod(mode)
    return file


def test_an_extension_in_one_file_is_looked_at_as_well(tmp_path: Path) -> None:
    file = script(tmp_path / "x.sh", '# /// hilt\n# permisions = []\n# version = "1"\n# ///\n')

    assert only(file, "fields").hint == 'did you mean "permissions"?'
    assert only(file, "program").message.startswith("it is run by /")
    assert [finding.check for finding in checkup(file, "/bin")] == [
        "manifest",
        "fields",
        "description",
        "permissions",
        "program",
    ]


@pytest.mark.parametrize(
    ("name", "text", "mode", "check", "words"),
    [
        ("x.py", "# /// hilt\n", 0o644, "manifest", "line 1: the block hilt does not end"),
        ("x.txt", "", 0o644, "program", "is not executable"),
        ("x", "#!/no/such/thing\n", 0o755, "shebang", "does not exist"),
        ("x.py", "#!/bin/sh\n", 0o757, "rights", "can be written by everybody"),
    ],
)
def test_what_is_wrong_with_a_file_is_an_error(
    tmp_path: Path, name: str, text: str, mode: int, check: str, words: str
) -> None:
    finding = only(script(tmp_path / name, text, mode), check)

    assert finding.level == "error" and words in finding.message and finding.hint


def test_a_file_in_a_directory_that_everybody_can_write_is_an_error_unless_it_is_sticky(tmp_path: Path) -> None:
    file = script(tmp_path / "x.sh", "")
    tmp_path.chmod(0o777)
    assert only(file, "rights").hint == f"chmod o-w {tmp_path}"

    tmp_path.chmod(0o1777)
    assert not found(file, "rights")


def test_a_script_with_dependencies_says_what_it_needs_before_it_can_run(tmp_path: Path) -> None:
    file = script(tmp_path / "x.py", '# /// script\n# dependencies = ["rich"]\n# ///\n')

    assert only(file, "dependencies").level == "info" and "rich" in only(file, "dependencies").message
    assert not found(file, "program")


def test_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    (finding,) = [one for one in checkup(tmp_path / "gone", "") if one.level == "error"]
    assert "No such file" in finding.message


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("#!/bin/sh", ("/bin/sh", "")),
        ("#! /bin/sh -e ", ("/bin/sh", "")),
        ("#!/usr/bin/env python3", ("/usr/bin/env", "python3")),
        ("#!/usr/bin/env -S python3 -u", ("/usr/bin/env", "python3")),
        ("#!/usr/bin/env -Spython3 -u", ("/usr/bin/env", "python3")),
        ("#!/usr/bin/env --split-string=uv run", ("/usr/bin/env", "uv")),
        ("#!/usr/bin/env -S A=1 -i uv run", ("/usr/bin/env", "uv")),
        ("#!/usr/bin/env python3 -u", ("/usr/bin/env", "")),  # only env itself understands it, and refuses
        ("#!/usr/bin/env -i", ("/usr/bin/env", "")),
        ("#!/usr/bin/env", ("/usr/bin/env", "")),
        ("# no", ("", "")),
        ("", ("", "")),
    ],
)
def test_the_first_line_of_a_script_names_its_interpreter(line: str, expected: tuple[str, str]) -> None:
    assert interpreter(f"{line}\nmore".encode()) == expected
    assert language_of(line.encode()) == Path(expected[1] or expected[0]).name
