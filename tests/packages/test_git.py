import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from hilt.errors import PackageError
from hilt.packages.install import calling
from hilt.packages.install.git import fetch
from hilt.packages.install.sources import Git
from hilt.packages.layout import Caps
from hilt.packages.trees import read_tree
from support.clocks import Leap
from support.packages import GIT_ENVIRONMENT, Repository, outside, repository


def local(repo: Repository, ref: str = "") -> Git:
    return Git(str(repo.path), ref, local=True)


def test_a_branch_a_tag_and_a_commit_are_fetched_exactly(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    first = repo.git("rev-parse", "HEAD").strip()
    repo.git("tag", "light")
    repo.git("tag", "--annotate", "--message", "v", "v1")
    (repo.path / "run").write_text("#!/bin/sh\nexit 2\n")
    second = repo.commit()
    for number, (ref, commit) in enumerate(
        [("", second), ("main", second), ("light", first), ("v1", first), (first, first), ("refs/heads/main", second)]
    ):
        assert fetch(local(repo, ref), tmp_path / str(number)) == commit
    assert (tmp_path / "3" / "run").read_text().endswith("exit 0\n")
    assert read_tree(tmp_path / "0") == read_tree(repo.path)
    assert not list(tmp_path.glob("*.git"))


def test_links_and_modes_are_kept_and_only_the_files_are_there(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    (repo.path / "at").symlink_to("lib/helper.py")
    repo.commit()
    fetch(local(repo), tmp_path / "out")
    assert (tmp_path / "out" / "at").readlink() == Path("lib/helper.py")
    assert os.access(tmp_path / "out" / "run", os.X_OK)
    assert not (tmp_path / "out" / ".git").exists()


def test_progress_is_told_in_lines_that_can_be_shown(tmp_path: Path) -> None:
    lines: list[str] = []
    fetch(local(repository(tmp_path / "repo")), tmp_path / "out", lines.append)
    assert any("objects" in line for line in lines)
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("ref", ["nowhere", "a" * 40, "deadbeef"])
def test_a_ref_that_is_not_there_is_an_error_that_names_it(tmp_path: Path, ref: str) -> None:
    with pytest.raises(PackageError) as caught:
        fetch(local(repository(tmp_path / "repo"), ref), tmp_path / "out")
    assert ref in caught.value.message and caught.value.hint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["repo"]


def test_what_is_no_repository_or_an_empty_one_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    with pytest.raises(PackageError, match="could not get"):
        fetch(Git(str(tmp_path / "plain"), local=True), tmp_path / "out")
    with pytest.raises(PackageError, match="is empty"):
        fetch(local(Repository(tmp_path / "empty")), tmp_path / "out")


def test_without_git_the_error_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PackageError, match="git is needed"):
        fetch(Git("https://example.org/repo"), tmp_path / "out")


def test_a_git_that_came_with_the_project_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = local(repository(tmp_path / "repository"))
    planted = tmp_path / "project" / "bin" / "git"  # A27
    planted.parent.mkdir(parents=True)
    planted.write_text(f"#!/bin/sh\ntouch {tmp_path}/canary\n")
    planted.chmod(0o755)
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("PATH", f"{planted.parent}:{os.environ['PATH']}")
    fetch(source, tmp_path / "out")
    assert not (tmp_path / "canary").exists()


# A7: nothing else is reached, and nothing is run


@pytest.mark.parametrize("url", ["ext::sh -c touch% evil", "--upload-pack=touch evil", "git://127.0.0.1:1/x", "fd::0"])
def test_git_itself_reaches_nothing_but_what_is_allowed(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even for an address that should never have come so far."""
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "ext:file:git:fd")
    before = outside(tmp_path, tmp_path / "none")
    for is_local in (True, False):
        with pytest.raises(PackageError):
            fetch(Git(url, "main", local=is_local), tmp_path / "out")
    with pytest.raises(PackageError, match="not allowed"):
        fetch(Git(str(repository(tmp_path / "repo").path), "main"), tmp_path / "out")
    assert outside(tmp_path, tmp_path / "repo") == before


def test_no_program_a_repository_or_a_setting_names_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hooks, templates, filters, fsmonitor, attributes: each would leave a mark."""
    mark = tmp_path / "mark"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho ran >> {mark}\ncat\n")
    program.chmod(0o755)
    hooks = tmp_path / "template" / "hooks"
    hooks.mkdir(parents=True)
    for hook in ("post-checkout", "reference-transaction", "post-merge", "post-index-change", "pre-auto-gc"):
        (hooks / hook).symlink_to(program)
    settings = (
        f"[init]\ntemplateDir = {tmp_path / 'template'}\n[core]\nhooksPath = {hooks}\nfsmonitor = {program}\n"
        f'attributesFile = {tmp_path / "attributes"}\n[filter "evil"]\nsmudge = {program}\nclean = {program}\n'
        "required = true\n"
    )
    (tmp_path / "config").write_text(settings)
    (tmp_path / "attributes").write_text("* filter=evil\n")
    repo = repository(tmp_path / "repo", files={".gitattributes": "* filter=evil\nlib/* export-ignore\n"})
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    monkeypatch.setenv("GIT_TEMPLATE_DIR", str(tmp_path / "template"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(program))
    fetch(local(repo), tmp_path / "out")
    assert not mark.exists(), mark.read_text()
    assert (tmp_path / "out" / "lib" / "helper.py").read_text() == "help = 1\n"


def test_variables_that_point_elsewhere_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo, other = repository(tmp_path / "repo"), repository(tmp_path / "other", name="other")
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.path))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path / "objects"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.bare")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "nonsense")
    fetch(local(repo), tmp_path / "out")
    assert '"demo"' in (tmp_path / "out" / "extension.json").read_text()
    assert not (tmp_path / "objects").exists()


def test_the_users_own_settings_for_reaching_hosts_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another address for a host leads to ssh, and ssh to a program: so far it came by the user's word alone."""
    program = tmp_path / "ssh"
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path / "asked"}\nexit 1\n')
    program.chmod(0o755)
    (tmp_path / "config").write_text(
        f'[core]\nsshCommand = {program}\n[url "ssh://git@inside.example.org/"]\ninsteadOf = https://outside.example.org/\n'
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    with pytest.raises(PackageError):
        fetch(Git("https://outside.example.org/repo"), tmp_path / "out")
    assert "git@inside.example.org" in (tmp_path / "asked").read_text()


def test_submodules_are_not_fetched(tmp_path: Path) -> None:
    inner, repo = repository(tmp_path / "inner", name="inner"), repository(tmp_path / "repo")
    repo.git("-c", "protocol.file.allow=always", "submodule", "add", "--quiet", str(inner.path), "sub")
    repo.commit()
    fetch(local(repo), tmp_path / "out")
    assert not (tmp_path / "out" / "sub").exists()
    assert (tmp_path / "out" / ".gitmodules").exists()


# A9: hostile trees, made of objects as no client would make them


def hostile(root: Path, *entries: tuple[str, str, bytes]) -> Repository:
    """One whose newest commit has these: mode, name, content."""
    repo = Repository(root)
    lines = b""
    for mode, name, content in entries:
        kind = ["-t", "tree"] if mode == "40000" else []
        made = repo.git("hash-object", "-w", "--literally", *kind, "--stdin", stdin=content).strip()
        lines += f"{mode} {name}".encode() + b"\0" + bytes.fromhex(made)
    tree = repo.git("hash-object", "-w", "--literally", "-t", "tree", "--stdin", stdin=lines).strip()
    commit = repo.git("commit-tree", tree, "-m", "x").strip()
    repo.git("update-ref", "refs/heads/main", commit)
    return repo


@pytest.mark.parametrize(
    "entries",
    [
        [("120000", "a", b"/etc/passwd")],
        [("120000", "a", b"../../secret")],
        [("120000", "a", b"b"), ("120000", "b", b"..")],
        [("120000", "a", b"run\x1b[2J")],
        [("100644", "..", b"x")],
        [("100644", "../evil", b"x")],
        [("100644", ".git", b"x")],
        [("100644", "a\\b", b"x")],
        [("100644", "a\nb", b"x")],
        [("100644", "A", b"x"), ("100644", "a", b"y")],
    ],
    ids=str,
)
def test_a_hostile_tree_is_refused_and_nothing_is_left(tmp_path: Path, entries: list[tuple[str, str, bytes]]) -> None:
    repo = hostile(tmp_path / "repo", *entries)
    (tmp_path / "inner").mkdir()
    with pytest.raises(PackageError) as caught:
        fetch(local(repo), tmp_path / "inner" / "out")
    assert caught.value.hint and caught.value.message.replace("\n", " ").isprintable()
    assert outside(tmp_path, repo.path) == {str(tmp_path / "inner")}


def test_a_link_to_an_endless_name_is_refused_before_it_is_held_in_memory(tmp_path: Path) -> None:
    with pytest.raises(PackageError, match="name that is too long"):
        fetch(local(hostile(tmp_path / "repo", ("120000", "a", b"x" * 5000))), tmp_path / "out")


def test_a_tree_that_holds_itself_over_and_over_is_refused(tmp_path: Path) -> None:
    """Ten folders of ten folders of …: a few objects that list a hundred million files."""
    repo = Repository(tmp_path / "repo")
    made, mode = repo.git("hash-object", "-w", "--stdin", stdin=b"x").strip(), "100644"
    for _ in range(8):
        lines = b"".join(f"{mode} {n}".encode() + b"\0" + bytes.fromhex(made) for n in range(10))
        made, mode = repo.git("hash-object", "-w", "-t", "tree", "--stdin", stdin=lines).strip(), "40000"
    repo.git("update-ref", "refs/heads/main", repo.git("commit-tree", made, "-m", "x").strip())
    with pytest.raises(PackageError, match="lists more"):
        fetch(local(repo), tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["repo"]


# Caps, patience, interruption


def test_a_repository_that_is_too_large_is_refused_before_its_files_are_made(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    (repo.path / "zeros").write_bytes(bytes(200_000))  # of which next to nothing is sent
    repo.commit()
    with pytest.raises(PackageError, match="more than 100000 bytes"):
        fetch(local(repo), tmp_path / "out", caps=Caps(size=100_000))
    (repo.path / "zeros").write_bytes(os.urandom(200_000))
    repo.commit()
    with pytest.raises(PackageError, match="bytes"):
        fetch(local(repo), tmp_path / "out", caps=Caps(size=100_000))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["repo"]


def stalled(tmp_path: Path) -> str:
    """An ssh that never ends, and tells who it and its child are."""
    program = tmp_path / "ssh"
    program.write_text(
        f"#!/bin/sh\nsleep 300 &\necho $$ $! > {tmp_path}/pids.new\nmv {tmp_path}/pids.new {tmp_path}/pids\nwait\n"
    )
    program.chmod(0o755)
    return str(program)


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True  # also in the middle of being read


def until(condition: object, seconds: float = 45.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]  # a function of the caller's
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_one_that_never_answers_is_given_up_on_and_ended_with_its_helpers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling, "time", Leap(tmp_path / "pids", calling.PATIENCE))
    monkeypatch.setenv("GIT_SSH", stalled(tmp_path))
    with pytest.raises(PackageError, match="not fetched within 600 seconds"):
        fetch(Git("ssh://example.org/repo"), tmp_path / "out")
    pids = (tmp_path / "pids").read_text().split()
    until(lambda: all(gone(int(pid)) for pid in pids))


def test_a_git_that_hangs_over_its_own_objects_is_given_up_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = repository(tmp_path / "repo")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "git"
    program.write_text(f'#!/bin/sh\ncase "$*" in *cat-file*) exec sleep 300;; esac\nexec {shutil.which("git")} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(calling, "PATIENCE", 5.0)
    with pytest.raises(PackageError, match="missing in what was fetched"):
        fetch(local(repo), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("moment", ["while it works", "while it is started"])
def test_interrupting_ends_git_and_leaves_nothing(tmp_path: Path, moment: str) -> None:
    (tmp_path / "inner").mkdir()
    program = (
        "import os, sys, pathlib, signal, subprocess, time\n"
        "from hilt.packages.install.git import fetch; from hilt.packages.install.sources import Git\n"
        "if len(sys.argv) > 2:\n"
        "    class Interrupted(subprocess.Popen):\n"
        "        def __init__(self, *args, **kwargs):\n"
        "            super().__init__(*args, **kwargs)\n"
        "            while 'fetch' in args[0] and not os.path.exists(sys.argv[2]): time.sleep(0.01)\n"
        "            if 'fetch' in args[0]: os.kill(os.getpid(), signal.SIGINT)\n"
        "    subprocess.Popen = Interrupted\n"
        "fetch(Git('ssh://example.org/repo', 'a' * 40), pathlib.Path(sys.argv[1]))"
    )
    environment = {**os.environ, **GIT_ENVIRONMENT, "GIT_SSH": stalled(tmp_path)}
    command = [sys.executable, "-c", program, str(tmp_path / "inner" / "out")]
    command += [str(tmp_path / "pids")] if moment == "while it is started" else []
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as process:
        if moment == "while it works":
            until(lambda: (tmp_path / "pids").exists())
            assert (tmp_path / "inner" / "out.git").exists()
            process.send_signal(signal.SIGINT)
        _, complaints = process.communicate(timeout=20)
    assert b"KeyboardInterrupt" in complaints
    assert list((tmp_path / "inner").iterdir()) == []
    pids = (tmp_path / "pids").read_text().split()
    try:
        until(lambda: all(gone(int(pid)) for pid in pids))
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


def test_one_that_sends_without_end_is_stopped_while_it_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is watched while git works, whatever the other side says of sizes."""
    program = tmp_path / "ssh"
    filled = tmp_path / "out.git"
    program.write_text(f"#!/bin/sh\ndd if=/dev/zero of={filled}/x bs=1000 count=300 2>/dev/null\nsleep 300\n")
    program.chmod(0o755)
    monkeypatch.setenv("GIT_SSH", str(program))
    with pytest.raises(PackageError, match="sends more than 100000"):
        fetch(Git("ssh://example.org/repo", "a" * 40), tmp_path / "out", caps=Caps(size=100_000))
    assert not filled.exists()


def test_what_the_other_side_says_reaches_nobody_as_escapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "ssh"
    program.write_text("#!/bin/sh\nprintf 'evil \\033]52;c;eA==\\007 \\342\\200\\256 words\\n' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("GIT_SSH", str(program))
    with pytest.raises(PackageError, match="evil") as caught:
        fetch(Git("ssh://example.org/repo"), tmp_path / "out")
    assert caught.value.message.replace("\n", " ").isprintable()


def test_a_moved_tag_resolves_to_another_commit(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    repo.git("tag", "v1")
    before = fetch(local(repo, "v1"), tmp_path / "before")
    repo.commit()
    repo.git("tag", "--force", "v1")
    assert fetch(local(repo, "v1"), tmp_path / "after") != before


def test_a_branch_of_a_tags_name_does_not_take_its_place(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    repo.git("tag", "v1")
    tagged = repo.git("rev-parse", "HEAD").strip()
    repo.commit()
    repo.git("branch", "v1")
    assert fetch(local(repo, "v1"), tmp_path / "out") == tagged
