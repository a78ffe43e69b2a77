import os
import socket
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.errors import ManifestError
from hilt.packages.manifest import Guard, Limits, Manifest
from hilt.packages.scripts.script import Script, hilt_block, read_script, script_command
from support.properties import patient

HEAD = 64 * 1024


def put(file: Path, text: str | bytes, mode: int = 0o644) -> Path:
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    file.chmod(mode)
    return file


def block(*lines: str, kind: str = "hilt", leader: str = "#") -> str:
    return "\n".join((f"{leader} /// {kind}", *(f"{leader} {line}".rstrip() for line in lines), f"{leader} ///", ""))


def refusal(file: Path) -> ManifestError:
    with pytest.raises(ManifestError) as caught:
        read_script(file)
    error = caught.value
    assert str(file) in error.message
    assert error.hint and "\n" not in error.message + error.hint
    return error


def tool(directory: Path, *names: str) -> str:
    """A PATH that holds programs of these names, and no others."""
    directory.mkdir(exist_ok=True)
    for name in names:
        put(directory / name, "#!/bin/sh\n", 0o755)
    return str(directory)


def test_a_script_that_says_nothing_is_named_after_its_file(tmp_path: Path) -> None:
    file = put(tmp_path / "my tool.py", "print('hi')\n")

    script = read_script(file)

    assert script == Script(Manifest("my-tool", exec=str(file)), language="python")


def test_every_field_of_a_manifest_can_stand_in_a_script(tmp_path: Path) -> None:
    fields = block(
        'name = "demo"',
        'version = "1.2"',
        'description = "Does things"',
        'args = ["a", ""]',
        "enabled = false",
        "priority = -3",
        "start_timeout_ms = 100",
        "tool_timeout_ms = 3_600_000",
        "stop_grace_ms = 0",
        'data_dir = "separate"',
        'permissions = ["net", "env:TOKEN"]',
        'sandbox = "strict"',
        'guard = {on_failure = "ask", timeout_ms = 300, required = true}',
        "",
        "[limits]",
        "memory_mb = 16",
    )
    file = put(tmp_path / "other.py", f"#!/usr/bin/env python3\n{fields}\nprint()\n")

    manifest = read_script(file).manifest

    assert manifest == Manifest(
        name="demo",
        version="1.2",
        exec=str(file),
        args=("a", ""),
        description="Does things",
        enabled=False,
        guard=Guard(on_failure="ask", timeout_ms=300, required=True),
        priority=-3,
        start_timeout_ms=100,
        tool_timeout_ms=3_600_000,
        stop_grace_ms=0,
        data_dir="separate",
        limits=Limits(memory_mb=16),
        permissions=("net", "env:TOKEN"),
        sandbox="strict",
    )


@pytest.mark.parametrize(
    ("name", "leader"),
    [("x.py", "#"), ("x.sh", "#"), ("x.rb", "#"), ("x.js", "//"), ("x.ts", "//"), ("x.go", "//"), ("x.lua", "--")],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_the_block_stands_behind_whatever_makes_a_comment(tmp_path: Path, name: str, leader: str, ending: str) -> None:
    text = "\ufeff" + block('version = "7"', leader=leader).replace("\n", ending) + f"{ending}code"

    assert read_script(put(tmp_path / name, text)).manifest.version == "7"


def test_a_script_says_what_it_needs_of_python(tmp_path: Path) -> None:
    dependencies = '["rich>=14", " tomli; python_version < \'3\'"]'
    needs = block('requires-python = ">=3.11"', f"dependencies = {dependencies}", kind="script")
    file = put(tmp_path / "x.py", f"{needs}\n{block('priority = 1')}\nimport rich\n")

    script = read_script(file)

    assert script.dependencies == ("rich>=14", "tomli; python_version < '3'")
    assert (script.requires_python, script.manifest.priority, script.needs_environment) == (">=3.11", 1, True)


def test_what_it_needs_of_python_is_a_comment_in_another_language(tmp_path: Path) -> None:
    needs = block('dependencies = ["rich"]', kind="script")

    assert read_script(put(tmp_path / "x.rb", needs)).dependencies == ()
    assert read_script(put(tmp_path / "x.sh", needs)).dependencies == ()
    assert read_script(put(tmp_path / "x", f"#!/usr/bin/env python3\n{needs}")).dependencies == ("rich",)


def test_other_blocks_and_whatever_else_a_comment_holds_are_passed_over(tmp_path: Path) -> None:
    text = (
        block("not TOML", kind="other") + "\n# /// hilt is nice\n  # /// hilt\n#/// hilt\n/// hilt\nx = '# /// hilt'\n"
    )

    assert read_script(put(tmp_path / "x.py", text)).manifest == Manifest("x", exec=str(tmp_path / "x.py"))


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("\n# /// hilt\n# priority = 1\n", 2, "does not end"),
        ("\n# /// hilt\n# priority = 1\nx = 1\n# ///\n", 2, "does not end"),
        ("# /// hilt\n// priority = 1\n# ///\n", 1, "does not end"),
        (f"{block()}\n{block()}", 4, "second block of the kind hilt, after that in line 1"),
        (f"{block(kind='script')}\n{block(kind='script')}", 4, "second block of the kind script"),
        ("\n" + block("a = 1", "b = = 1"), 4, "not TOML: Invalid value"),
        ("\n" + block("a = 1", "a = 1"), 4, "not TOML"),
        ("\n" + block("a = 1", 'b = """'), 4, "not TOML: Unterminated string"),
        ("\n" + block("priority = " + "9" * 5000), 3, "not TOML"),
        ("\n" + block("priority = 0x" + "f" * 5000), 3, "more than 64 bits"),
        ("\n" + block("a = " + "[" * 60 + "]" * 60), 2, "nested too deeply"),
        ("\n" + block("a = " + "[" * 9000 + "]" * 9000), 2, "nested too deeply"),
        ("\n" + block(f"{'.'.join('a' * 500)} = 1"), 2, "nested too deeply"),
        ("\n" + block("priority = 'high'"), 2, '"priority" must be a whole number'),
        ("\n" + block("version = 2026-01-01"), 2, '"version" must be a string'),
        ("\n" + block('name = "../x"'), 2, '"name" must match'),
        ("\n" + block('permissions = ["all"]'), 2, "is not a permission"),
        ("\n" + block('exec = "/bin/sh"'), 2, '"exec" has no place here'),
        ("\n" + block("dependencies = 'rich'", kind="script"), 2, '"dependencies" must be a list of strings'),
        ("\n" + block("dependencies = [1]", kind="script"), 2, '"dependencies" must be a list of strings'),
        ("\n" + block("dependencies = ['--pre']", kind="script"), 2, 'holds "--pre", which begins like an option'),
        ("\n" + block(f"dependencies = {['a'] * 201}", kind="script"), 2, "more than 200"),
        ("\n" + block("requires-python = 3.11", kind="script"), 2, '"requires-python" must be a string'),
        ("\n" + block("requires-python = '3'", kind="script"), 2, "not a range of versions"),
        ("# /// hilt\n# a = '", 1, "does not end"),
    ],
)
def test_what_is_wrong_with_a_block_is_told_with_its_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    error = refusal(put(tmp_path / "x.py", text))

    assert error.message.startswith(f"{tmp_path / 'x.py'}, line {line}: ") and words in error.message


def test_a_block_that_is_not_utf_8_is_told_with_its_line(tmp_path: Path) -> None:
    text = block("priority = 1", "# NOTE").encode().replace(b"NOTE", b"\xff")

    assert "line 3: is not UTF-8" in refusal(put(tmp_path / "x.py", text)).message


def test_a_comment_that_goes_on_after_the_block_is_refused_for_other_tools_read_on(tmp_path: Path) -> None:
    text = block("dependencies = []", kind="script") + "# dependencies = ['evil']\n# ///\n"

    error = refusal(put(tmp_path / "x.py", text))

    assert "line 3: the block script ends here" in error.message and "empty line" in error.hint


def test_only_the_beginning_of_a_large_file_is_read(tmp_path: Path) -> None:
    early, late = block("priority = 1"), block("priority = 2")

    assert read_script(put(tmp_path / "a.py", early + "\n" + "x\n" * HEAD + late)).manifest.priority == 1
    assert read_script(put(tmp_path / "b.py", "x\n" * HEAD + late)).manifest.priority == 0


def test_a_block_that_is_too_large_is_refused(tmp_path: Path) -> None:
    error = refusal(put(tmp_path / "x.py", block(*["# filler"] * HEAD)))

    assert f"line 1: the block hilt does not end in the first {HEAD} bytes" in error.message


def test_a_binary_is_never_searched_for_blocks(tmp_path: Path) -> None:
    file = put(tmp_path / "tool", b"\x7fELF\n" + block("broken").encode(), 0o755)

    assert read_script(file).manifest == Manifest("tool", exec=str(file))
    assert script_command(read_script(file), "") == (str(file),)


def test_a_script_is_never_executed_for_being_read(tmp_path: Path) -> None:
    file = put(tmp_path / "x.py", f"#!/bin/sh\ntouch {tmp_path}/ran\n", 0o755)

    read_script(file)

    assert not (tmp_path / "ran").exists()


def test_what_is_no_file_is_refused_without_waiting_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    monkeypatch.chdir(tmp_path)  # a socket's path has to be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s.py")

    for name in ("pipe.py", "s.py"):
        assert "not a regular file" in refusal(tmp_path / name).message
    assert "No such file" in refusal(tmp_path / "missing.py").message


def test_a_file_whose_name_makes_no_name_has_to_say_one(tmp_path: Path) -> None:
    assert "no letter or digit" in refusal(put(tmp_path / "___.py", "")).message
    assert read_script(put(tmp_path / "___.py", block('name = "x"'))).manifest.name == "x"


def test_a_file_name_of_strange_bytes_is_kept_and_shown_as_text(tmp_path: Path) -> None:
    file = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff.py"))
    put(file, block("priority = 1"))

    assert read_script(file).manifest.exec == str(file)
    put(file, block("priority = ''"))
    with pytest.raises(ManifestError) as caught:
        read_script(file)
    caught.value.message.encode()


def test_what_the_block_says_can_be_had_unjudged(tmp_path: Path) -> None:
    assert hilt_block(put(tmp_path / "x.py", block("permisions = []", "priority = ''"))) == {
        "permisions": [],
        "priority": "",
    }
    assert hilt_block(put(tmp_path / "x.py", "")) == {}


@pytest.mark.parametrize(
    ("name", "tools", "command"),
    [
        ("x.py", ("python3",), ("python3",)),
        ("x.js", ("deno", "bun", "node"), ("node",)),
        ("x.mjs", ("deno", "bun"), ("bun",)),
        ("x.cjs", ("deno",), ("deno", "run", "--allow-all")),
        ("x.ts", ("deno", "bun", "node"), ("bun",)),
        ("x.ts", ("node",), ("node",)),
        ("x.sh", ("sh",), ("sh",)),
        ("x.rb", ("ruby",), ("ruby",)),
        ("x.go", ("go",), ("go", "run")),
    ],
)
def test_a_file_that_is_not_executable_is_run_by_what_its_name_calls_for(
    tmp_path: Path, name: str, tools: tuple[str, ...], command: tuple[str, ...]
) -> None:
    file = put(
        tmp_path / name, block('args = ["-v"]', leader="//" if name[2:] in ("js", "mjs", "cjs", "ts", "go") else "#")
    )

    found = script_command(read_script(file), tool(tmp_path / "bin", *tools))

    assert found == (str(tmp_path / "bin" / command[0]), *command[1:], str(file), "-v")


def test_an_executable_with_an_interpreter_is_run_as_it_is(tmp_path: Path) -> None:
    file = put(tmp_path / "x.py", "#!/usr/bin/env -S python3 -u\n" + block('args = ["-v"]'), 0o755)

    assert script_command(read_script(file), "") == (str(file), "-v")


def test_an_executable_without_an_interpreter_is_run_by_what_its_name_calls_for(tmp_path: Path) -> None:
    path = tool(tmp_path / "bin", "python3")
    named, unnamed = put(tmp_path / "x.py", "print()\n", 0o755), put(tmp_path / "x", "true\n", 0o755)

    assert script_command(read_script(named), path) == (str(tmp_path / "bin/python3"), str(named))
    assert script_command(read_script(unnamed), path) == (str(unnamed),)


def test_a_python_script_runs_even_where_there_is_no_python_on_path(tmp_path: Path) -> None:
    file = put(tmp_path / "x.py", "")

    assert script_command(read_script(file), "") == (sys.executable, str(file))


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [("x.txt", "is not executable", "chmod +x"), ("x.ts", "no bun and no deno and no node on PATH", "install bun")],
)
def test_a_file_that_nothing_runs_is_refused_with_what_would_help(
    tmp_path: Path, name: str, message: str, hint: str
) -> None:
    script = read_script(put(tmp_path / name, ""))

    with pytest.raises(ManifestError, match=message) as caught:
        script_command(script, "")
    assert hint in caught.value.hint


@pytest.mark.parametrize("first", ["", "#!/usr/bin/env python3\n", "#!/usr/bin/python3.11 -u\n"])
def test_a_python_script_with_dependencies_is_run_by_the_python_that_has_them(tmp_path: Path, first: str) -> None:
    file = put(tmp_path / "x.py", first + block("dependencies = ['rich']", kind="script"), 0o755)
    script = read_script(file)

    assert script_command(script, "", Path("/env/bin/python")) == ("/env/bin/python", str(file))
    with pytest.raises(ManifestError, match="not installed: rich"):
        script_command(script, tool(tmp_path / "bin", "python3"))


def test_a_script_that_brings_its_own_runner_is_left_to_it(tmp_path: Path) -> None:
    text = "#!/usr/bin/env -S uv run --script\n" + block("dependencies = ['rich']", kind="script")
    script = read_script(put(tmp_path / "x.py", text, 0o755))

    assert not script.needs_environment
    assert script_command(script, "") == (str(tmp_path / "x.py"),)
    assert read_script(put(tmp_path / "x.py", text, 0o644)).needs_environment


@patient
@given(
    st.lists(
        st.sampled_from(
            [b"# /// hilt", b"# /// script", b"# ///", b"#", b"# a = 1", b"# name = 'x'", b"x", b"", b"# \xff", b"# ["]
        ),
        max_size=12,
    )
)
def test_any_file_is_read_or_refused_with_a_reason(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    file = put(tmp_path_factory.getbasetemp() / "any.py", b"\n".join(lines))
    refused = ""
    try:
        script = read_script(file)
    except ManifestError as error:
        refused = error.message
    else:
        assert script.manifest.name in ("any", "x")
    assert not refused or str(file) in refused
