"""An extension that is one file: installed under its stem, if it answers, with what it needs of Python."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from support.agent import calls, says
from support.ext_site import SAYS_HELLO, ExtSite
from support.hilt_process import DEADLINE, until, wait_gone

PYTHON = """# /// script
# dependencies = [DEPENDENCIES]
# ///

# /// hilt
# version = "3.1"
# permissions = ["net"]
# description = "adds up"
# ///

import json, sys
CODE
print('{"type":"hello","name":"sums"}')
print('{"type":"register_tool","name":"add","description":"d","schema":{"type":"object"}}')
print('{"type":"ready"}', flush=True)
for line in sys.stdin:
    frame = json.loads(line)
    if frame["type"] == "tool_call":
        answer = {"type": "tool_result", "id": frame["id"], "content": [{"type": "text", "text": "3"}]}
        print(json.dumps(answer), flush=True)
"""


# A stand-in for the real one, which not everybody has: environments without pip, packages from a directory.
UV = """#!/bin/sh
[ "$1" = venv ] && exec python3 -I -m venv --without-pip .
[ -f "$UV_FIND_LINKS/leftpad.py" ] || { echo "no such package" >&2; exit 1; }
cp "$UV_FIND_LINKS/leftpad.py" lib/python*/site-packages
"""


@pytest.fixture
def site(tmp_path: Path) -> ExtSite:
    """With one Python on the PATH, and what makes environments for it."""
    site = ExtSite(tmp_path)
    (tmp_path / "bin").mkdir()
    (tmp_path / "wheels").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(os.path.realpath(sys.executable))
    (tmp_path / "bin" / "uv").write_text(UV)
    (tmp_path / "bin" / "uv").chmod(0o755)
    site.environment |= {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "UV_FIND_LINKS": str(tmp_path / "wheels")}
    return site


def python(dependencies: str = "", code: str = "") -> str:
    return PYTHON.replace("DEPENDENCIES", dependencies).replace("CODE", code)


def test_a_program_that_answers_is_installed_under_its_stem(site: ExtSite) -> None:
    done = site.ext("install", str(site.file("greeter.sh")), "--yes")

    assert done.code == 0 and "starting greeter…" in done.err
    row = site.row("greeter")
    assert row["pinned"] and row["version"] == "7" and row["origin"] == str(site.folder / "files" / "greeter.sh")
    assert not list(site.home.rglob("ext-greeter.log"))
    run = site.run("-p", "hi", *site.script(says("hello")))
    assert (run.code, run.err) == (0, "")


def test_a_file_that_cannot_be_run_is_named_as_the_user_knows_it(site: ExtSite) -> None:
    file = site.file("notes.txt", "not a program", 0o644)
    done = site.ext("install", str(file), "--yes")

    assert done.code == 1 and f"{file} is not executable" in done.err and f"hint: chmod +x {file}" in done.err
    assert ".staging" not in done.err and site.left() == {}


def test_what_a_script_says_of_itself_is_shown_and_holds(site: ExtSite) -> None:
    done = site.ext("install", str(site.file("sums.py", python(), 0o644)), "--yes")
    run = site.run("--json", "go", *site.script(calls(("add", {})), says("done")))

    assert done.code == 0, done
    assert "sums 3.1: adds up" in done.err and "[net]" in done.err
    row = site.row("sums")
    assert (row["version"], row["sandbox"], row["contributes"]) == ("3.1", "standard", {"tools": ["add"]})
    assert [event["type"] for event in run.events].count("tool_result") == 1


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("mute.sh", "#!/bin/sh\necho cannot find leftpad >&2\nexit 3\n", "cannot find leftpad"),
        ("talker.sh", "#!/bin/sh\necho hello there\nexit 0\n", "exited"),
        ("nothing.sh", "#!/no/such/shell\n", "/no/such/shell"),
    ],
)
def test_one_that_does_not_answer_is_refused_with_its_last_words_and_leaves_nothing(
    site: ExtSite, name: str, text: str, told: str
) -> None:
    site.configure("# mine\n")
    before = site.left()
    done = site.ext("install", str(site.file(name, text)), "--yes")

    assert done.code == 1 and name.partition(".")[0] in done.err and told in done.err and "hint:" in done.err
    assert site.left() == before


def test_one_that_hangs_is_given_up_after_its_time_and_nothing_of_it_is_left(site: ExtSite) -> None:
    mark = f"3{abs(hash(site.folder)) % 10**9}"
    block = "# /// hilt\n# start_timeout_ms = 300\n# ///\n"
    done = site.ext("install", str(site.file("hung.sh", f"#!/bin/sh\n{block}\nsleep {mark}\n")), "--yes")

    assert done.code == 1 and "hung" in done.err and site.left() == {}
    wait_gone(mark)


def test_an_update_that_does_not_answer_is_refused_too_and_the_old_one_stays(site: ExtSite) -> None:
    file = site.file("greeter.sh")
    site.ext("install", str(file), "--yes")
    before = site.left()
    site.file("greeter.sh", "#!/bin/sh\nexit 3\n")
    refused, after = site.ext("update", "greeter", "--yes"), site.left()
    site.file("greeter.sh", SAYS_HELLO + "# better\n")
    done = site.ext("update", "greeter", "--yes")

    assert refused.code == 1 and "exited with code 3" in refused.err and after == before
    assert done.code == 0 and "# better" in (site.home / "extensions" / "greeter" / "greeter.sh").read_text()


def test_an_interrupted_install_ends_with_130_and_nothing_of_it_is_left(site: ExtSite) -> None:
    file = site.file("hung.sh", f"#!/bin/sh\ntouch {site.folder}/started\nsleep 50\n")
    with site.started("ext", "install", str(file), "--yes") as process:
        until((site.folder / "started").exists, "the start")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 130 and b"Traceback" not in err
    assert site.left() == {} and not list((site.home / "extensions").iterdir())
    wait_gone(str(site.home))


def test_a_file_without_a_yes_is_never_started(site: ExtSite) -> None:
    done = site.ext("install", str(site.file("greeter.sh", "#!/bin/sh\ntouch ../../../was-here was-here\n")))

    assert done.code == 2 and not list(site.folder.rglob("was-here")) and site.left() == {}


def test_packages_it_depends_on_come_into_an_environment_of_its_own_that_goes_with_it(site: ExtSite) -> None:
    (site.folder / "wheels" / "leftpad.py").write_text("VALUE = 'padded'\n")
    file = site.file("sums.py", python('"leftpad"', "import leftpad; print(leftpad.VALUE, file=sys.stderr)"), 0o644)
    refused = site.ext("install", str(file))
    done = site.ext("install", str(file), "--yes")
    run = site.run("--json", "go", *site.script(calls(("add", {})), says("done")))
    again = site.ext("install", str(file), "--yes")

    assert refused.code == 2 and "Build an environment for sums?" in refused.err
    assert done.code == 0 and "it installs leftpad" in done.err, done
    assert "padded" in site.ext("logs", "sums").out and "tool_result" in json.dumps(run.events)
    assert again.code == 1 and (site.home / "extensions" / ".environments" / "sums").is_dir()
    assert site.ext("remove", "sums", "--yes").code == 0
    assert not (site.home / "extensions" / ".environments" / "sums").exists()


def test_an_environment_that_cannot_be_built_leaves_nothing(site: ExtSite) -> None:
    done = site.ext("install", str(site.file("sums.py", python('"leftpad"'), 0o644)), "--yes")

    assert done.code == 1 and "no such package" in done.err and "hint:" in done.err
    assert site.left() == {} and not (site.home / "extensions" / ".environments" / "sums").exists()


def test_an_environment_of_one_that_does_not_answer_goes_with_it(site: ExtSite) -> None:
    (site.folder / "wheels" / "leftpad.py").write_text("VALUE = 1\n")
    done = site.ext("install", str(site.file("sums.py", python('"leftpad"', "sys.exit('not today')"), 0o644)), "--yes")

    assert done.code == 1 and "not today" in done.err
    assert site.left() == {} and not (site.home / "extensions" / ".environments" / "sums").exists()
