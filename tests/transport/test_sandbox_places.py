"""What is there for a confined program: what it was given, by whatever way it is named, and nothing that is hidden."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.transport import landlock
from hilt.transport.layout import MOUNTS, layout
from hilt.transport.sandbox import confine, secrets
from support.properties import patient
from transport.confinement import DEADLINE, World, without_bubblewrap, world

MEANS = ("bubblewrap", "bubblewrap alone", "landlock")


@pytest.fixture(params=MEANS)
def means(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    if request.param == "landlock":
        without_bubblewrap(monkeypatch, tmp_path)
    if request.param == "bubblewrap alone":
        monkeypatch.setattr(landlock, "_known", 0)
    return str(request.param)


def python(made: World, text: str, **changes: Any) -> str:
    """What a few lines print, confined."""
    confined = confine((sys.executable, "-I", "-S", "-c", text), made.policy(**changes))
    ended = subprocess.run(confined.argv, cwd=made.code, capture_output=True, text=True, timeout=DEADLINE)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def tried(made: World, *attempts: str, **changes: Any) -> list[str]:
    """Expressions, and for each what it came to: its value or the name of the error."""
    code = "import os, json\nfrom pathlib import Path\nout = []\n"
    for attempt in attempts:
        code += f"try: out.append(str({attempt}))\nexcept OSError as error: out.append(type(error).__name__)\n"
    found: list[str] = json.loads(python(made, code + "print(json.dumps(out))", **changes))
    return found


UNREADABLE = ("FileNotFoundError", "PermissionError")


def test_a_secret_that_appears_while_it_runs_stays_hidden(means: str) -> None:
    # The user's own programs write secrets, and replace them, while an extension runs for days.
    with world() as made:
        (made.home / ".npmrc").write_text("old")
        hidden = (*made.policy().hidden, made.home / ".npmrc")
        code = f"""
print("ready", flush=True)
input()
for path in {[str(made.home / name) for name in (".netrc", ".npmrc", ".config/gh/token")]!r}:
    try: print(repr(open(path).read()))
    except OSError as error: print("hidden")
print(open({str(made.home / "notes")!r}).read())
"""
        argv = confine((sys.executable, "-I", "-S", "-c", code), made.policy(hidden=hidden)).argv
        with subprocess.Popen(argv, cwd=made.code, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout and process.stdout.readline() == "ready\n"
            (made.home / ".netrc").write_text("new")
            (made.home / "npmrc.new").write_text("new")
            (made.home / "npmrc.new").replace(made.home / ".npmrc")
            (made.home / ".config/gh").mkdir()
            (made.home / ".config/gh/token").write_text("new")
            said, _ = process.communicate("\n", timeout=DEADLINE)
        assert said.splitlines() == ["hidden", "hidden", "hidden", "some notes"]


def test_a_secret_that_appears_in_a_project_below_tmp_stays_hidden(means: str, tmp_path: Path) -> None:
    with world() as made:
        policy = made.policy(readable=(tmp_path,), hidden=(*made.policy().hidden, tmp_path / "late"))
        code = f"print('ready', flush=True); input(); print(open({str(tmp_path / 'late')!r}).read())"
        argv = confine((sys.executable, "-I", "-S", "-c", code), policy).argv
        piped: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        with subprocess.Popen(argv, cwd=made.code, text=True, **piped) as process:
            assert process.stdout and process.stdout.readline() == "ready\n"
            (tmp_path / "late").write_text("a secret")
            said, error = process.communicate("\n", timeout=DEADLINE)
        assert said == ""
        assert any(name in error for name in UNREADABLE)


def test_a_home_that_does_not_exist_keeps_nobody_from_starting(means: str) -> None:
    with world() as made:
        assert tried(made, "1", home=made.root / "nowhere", readable=()) == ["1"]
        assert tried(made, "1", home=Path("/"), readable=()) == ["1"]


def test_a_writable_home_gives_no_way_to_put_a_secret_in_place(means: str) -> None:
    with world() as made:
        deep = made.home / "a/b/c/secret"
        deep.parent.mkdir(parents=True)
        deep.write_text("deep")
        home = made.home
        outcomes = tried(
            made,
            f"Path({str(home / '.netrc')!r}).write_text('x')",
            f"os.mkdir({str(home / '.config/gh')!r})",
            f"os.rename({str(home / '.config')!r}, {str(home / 'moved')!r})",
            f"os.rename({str(home / '.ssh')!r}, {str(home / 'moved')!r})",
            f"os.rename({str(home / 'a/b')!r}, {str(home / 'a/moved')!r})",
            f"os.rename({str(home / 'a/b/c')!r}, {str(home / 'a/moved')!r})",
            f"os.unlink({str(deep)!r})",
            f"os.symlink('/etc/passwd', {str(home / '.netrc')!r})",
            f"Path({str(home / 'project/new')!r}).write_text('x')",
            f"Path({str(home / 'notes')!r}).write_text('x')",
            f"Path({str(home / '.config/app/new')!r}).write_text('x')",
            writable=(home,),
            hidden=(*made.policy().hidden, deep),
        )
        assert all(not outcome.isdigit() and outcome != "None" for outcome in outcomes[:8]), outcomes
        assert outcomes[8:] == ["1", "1", "1"]
        assert deep.read_text() == "deep"
        assert sorted(os.listdir(home)) == [".config", ".local", ".ssh", "a", "notes", "project"]


def test_its_code_cannot_be_written_even_in_a_writable_project_but_new_files_can(means: str) -> None:
    with world() as made:
        code = made.project / ".hilt/extensions/own"
        code.mkdir(parents=True)
        (code / "main.py").write_text("")
        outcomes = tried(
            made,
            f"Path({str(code / 'main.py')!r}).write_text('x')",
            f"Path({str(made.project / 'source')!r}).write_text('x')",
            f"Path({str(made.project / 'new')!r}).write_text('x')",
            code=code,
            writable=(made.project,),
        )
        assert outcomes[0] in ("OSError", "PermissionError")
        # Landlock alone can only give a right for all of a directory, so it gives none for one with code in it.
        assert outcomes[1:] == ["1", "PermissionError" if means == "landlock" else "1"]


def test_code_that_may_be_written_and_code_that_is_its_data(means: str) -> None:
    with world() as made:
        write = f"Path({str(made.code / 'new')!r}).write_text('x')"
        assert tried(made, write, writable=(made.code,)) == ["1"]
        assert tried(made, write, data=made.code) == ["1"]


def test_secrets_stay_hidden_when_the_code_lies_above_them(means: str) -> None:
    with world() as made:
        outcomes = tried(
            made,
            f"Path({str(made.home / '.ssh/id')!r}).read_text()",
            f"Path({str(made.home / 'notes')!r}).read_text()",
            code=made.home,
            level="strict",
            readable=(),
        )
        assert outcomes[0] in UNREADABLE
        assert outcomes[1] == "some notes"


@pytest.mark.parametrize("level", ["standard", "strict"])
def test_what_else_belongs_to_it_is_readable_where_that_is_hidden(means: str, level: str) -> None:
    with world() as made:
        own = made.hilt / "environments/own"
        own.mkdir(parents=True)
        (own / "library").write_text("a library")
        (own.parent / "other").mkdir()
        (own.parent / "other/library").write_text("another's")
        outcomes = tried(
            made,
            f"Path({str(own / 'library')!r}).read_text()",
            f"Path({str(own / 'new')!r}).write_text('x')",
            f"Path({str(own.parent / 'other/library')!r}).read_text()",
            level=level,
            own=(own,),
            writable=None if level == "standard" else (),
        )
        assert outcomes[0] == "a library"
        assert outcomes[1] in ("OSError", "PermissionError")
        assert outcomes[2] in UNREADABLE


def test_what_is_hidden_cannot_be_had_by_asking_for_it(means: str) -> None:
    with world() as made:
        outcomes = tried(
            made,
            f"Path({str(made.home / '.ssh/id')!r}).read_text()",
            f"Path({str(made.home / '.ssh/new')!r}).write_text('x')",
            readable=(made.home / ".ssh", made.home / ".ssh/id"),
            writable=(made.home / ".ssh",),
        )
        assert set(outcomes) <= {*UNREADABLE, "OSError"}


def test_a_secret_behind_a_link_is_hidden_where_it_really_lies(means: str) -> None:
    with world() as made:
        real = made.outside / "keys"
        (made.home / ".ssh").rename(real)
        (made.home / ".ssh").symlink_to(real)
        outcomes = tried(
            made,
            f"Path({str(real / 'id')!r}).read_text()",
            f"Path({str(made.home / '.ssh/id')!r}).read_text()",
            f"os.unlink({str(made.home / '.ssh')!r})",
            writable=(made.home,),
        )
        assert outcomes[0] in UNREADABLE and outcomes[1] in UNREADABLE
        assert outcomes[2] in ("OSError", "PermissionError")
        assert (made.home / ".ssh").is_symlink()
        alone = f"os.unlink({str(made.home / '.ssh')!r})"
        assert tried(made, alone, writable=(made.home,), hidden=(made.home / ".ssh",)) != ["None"]


@pytest.mark.parametrize("level", ["standard", "strict"])
def test_everything_is_found_by_the_names_it_was_given_by(means: str, level: str) -> None:
    # A home on another disk, a project behind a link, a linked extension: names are what programs have.
    with world() as made:
        links = made.root / "links"
        links.mkdir()
        (links / "home").symlink_to("../home")
        (links / "code").symlink_to(made.code)
        (links / "project").symlink_to("home/project")
        outcomes = tried(
            made,
            f"Path({str(links / 'code/probe.py')!r}).exists()",
            f"Path({str(links / 'project/new')!r}).write_text('x')",
            f"Path({str(links / 'home/.ssh/id')!r}).read_text()",
            f"Path({str(made.home / '.ssh/id')!r}).read_text()",
            level=level,
            code=links / "code",
            home=links / "home",
            readable=(),
            writable=(links / "project",),
            hidden=(links / "home/.ssh", links / "home/.local/state/hilt"),
        )
        assert outcomes[:2] == ["True", "1"]
        assert outcomes[2] in UNREADABLE and outcomes[3] in UNREADABLE
        assert (made.project / "new").exists()


def test_single_files_and_paths_that_do_not_exist_can_be_granted(means: str) -> None:
    with world() as made:
        outcomes = tried(
            made,
            f"Path({str(made.home / 'notes')!r}).read_text()",
            f"Path({str(made.project / 'source')!r}).write_text('x')",
            f"Path({str(made.outside / 'missing')!r}).write_text('x')",
            level="strict",
            readable=(made.home / "notes", made.home / "nowhere"),
            writable=(made.project / "source", made.outside / "missing"),
        )
        assert outcomes[:2] == ["some notes", "1"]
        assert not outcomes[2].isdigit()


def test_a_project_below_tmp_is_there_when_it_was_granted(means: str, tmp_path: Path) -> None:
    (tmp_path / "source").write_text("some source")
    (tmp_path / "secret").write_text("a secret")
    with world() as made:
        outcomes = tried(
            made,
            f"Path({str(tmp_path / 'source')!r}).read_text()",
            f"Path({str(tmp_path / 'secret')!r}).read_text()",
            readable=(tmp_path,),
            hidden=(*made.policy().hidden, tmp_path / "secret"),
        )
        assert outcomes[0] == "some source"
        assert outcomes[1] in UNREADABLE


@pytest.mark.parametrize("name", ["with space", 'quo"te', "back\\slash", "new\nline", "--", "ünï", "\udcff"])
def test_any_name_will_do_for_a_directory(means: str, name: str) -> None:
    with world() as made:
        odd = made.outside / name
        odd.mkdir()
        (odd / "file").write_text("odd")
        outcomes = tried(
            made,
            f"Path({str(odd / 'file')!r}).read_text()",
            f"Path({str(odd / 'new')!r}).write_text('x')",
            level="strict",
            readable=(),
            writable=(odd,),
        )
        assert outcomes == ["odd", "1"]


def test_a_home_with_more_entries_than_can_be_mounted_does_not_keep_it_from_starting(means: str) -> None:
    with world() as made:
        for number in range(MOUNTS + 20):
            (made.home / f"directory{number}").mkdir()
        outcomes = tried(made, f"Path({str(made.home / '.ssh/id')!r}).read_text()", "1")
        assert outcomes[0] in UNREADABLE
        assert outcomes[1] == "1"
        argv = confine(("/bin/true",), made.policy()).argv
        assert argv.count("--ro-bind-try") <= MOUNTS + 20
        few = layout(made.policy(), (), 10)
        assert len(few.entries) <= 10 * len(few.rebuilt)
        assert made.home / "notes" not in few.entries  # directories come first


NAMES = [
    ".ssh",
    ".ssh/id",
    ".config",
    ".config/gh",
    ".config/app/settings",
    "notes",
    "project",
    "project/source",
    "x/y/z",
]


@pytest.fixture(scope="module")
def still() -> Iterator[World]:
    with world() as made:
        (made.home / "link").symlink_to("project")
        yield made


@patient
@given(data=st.data())
def test_no_grant_whatever_makes_anything_hidden_visible(still: World, data: st.DataObject) -> None:
    home = still.home
    some = st.lists(st.sampled_from([*NAMES, "", "link", "link/source", "../outside", ".."]), max_size=4).map(
        lambda names: tuple(home / name for name in names)
    )
    names = data.draw(st.lists(st.sampled_from([*NAMES, "link"]), min_size=1, max_size=4))
    hidden = tuple(home / name for name in names)
    policy = still.policy(
        level=data.draw(st.sampled_from(["standard", "strict"])),
        readable=data.draw(st.none() | some),
        writable=data.draw(st.none() | some),
        hidden=hidden,
        code=data.draw(st.sampled_from([still.code, still.project, home])),
    )
    needed = data.draw(some)
    made = layout(policy, needed)
    own = {Path(os.path.realpath(path)) for path in (policy.code, policy.data)}
    for one in hidden:
        real = Path(os.path.realpath(one))
        if not own & {real, *real.parents}:
            assert made.kind(real) == "empty", (policy, needed)
    assert made.kind(Path(os.path.realpath(policy.data))) == "rw"
    assert made.visible(policy.code) or policy.code in made.rebuilt


def test_the_usual_secrets_are_known(tmp_path: Path) -> None:
    found = {str(path.relative_to(tmp_path)) for path in secrets(tmp_path)}
    assert {".ssh", ".aws", ".gnupg", ".netrc", ".config/gh", ".docker", ".kube", ".npmrc", ".pypirc"} <= found
    assert {".git-credentials", ".config/gcloud", ".azure", ".password-store", ".local/share/keyrings"} <= found
    assert {".mozilla", ".config/google-chrome", ".bash_history", ".claude", ".codex", ".zot", ".config/zot"} <= found
    assert {".gemini", ".config/piglet", "Library/Application Support/Firefox"} <= found


@pytest.mark.parametrize("means", ["bubblewrap", "landlock"], indirect=True)
@pytest.mark.parametrize("programs", [True, False])
def test_a_socket_that_lies_where_it_may_read_or_write_is_none_it_can_talk_to(means: str, *, programs: bool) -> None:
    with world() as made, socket.socket(socket.AF_UNIX) as server:
        server.bind(str(made.outside / "s"))
        server.listen()
        text = f"""if True:
            import socket
            try:
                socket.socket(socket.AF_UNIX).connect({str(made.outside / "s")!r})
                print("connected")
            except PermissionError:
                print("denied")
            socket.socketpair()"""
        granted = (made.outside,)
        assert python(made, text, readable=granted, programs=programs) == "denied", means
        assert python(made, text, readable=(), writable=granted, programs=programs) == "denied"


@pytest.mark.parametrize("level", ["standard", "strict"])
def test_of_a_closed_place_only_what_was_named_is_there_and_the_whole_disk_is_none(means: str, level: str) -> None:
    with world() as made:
        (made.outside / "docs").mkdir()
        (made.outside / "docs" / "page").write_text("a page")
        places = [str(place) for place in (made.outside / "docs/page", made.outside / "victim", made.home / "notes")]
        text = f"""if True:
            def read(path):
                try:
                    return open(path).read() or "empty"
                except OSError:
                    return "-"
            print(*map(read, {places!r}))"""
        closed = {"level": level, "readable": (made.outside / "docs",), "closed": (made.outside, Path("/"))}
        assert python(made, text, **closed) == "a page - -", means
