"""The files of a project: which are offered, from where, how they are found, and what a hostile one can do."""

import asyncio
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilt.context import listing
from hilt.context.fuzzy import Index
from hilt.context.listing import Listing, Patience, list_project, walk
from hilt.context.project_files import ProjectFiles
from support.clocks import Leap
from support.properties import patient


@pytest.fixture(autouse=True)
def own_git(monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings but those of the test."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


def make(root: Path, *paths: str, **contents: str) -> Path:
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    for path, content in contents.items():
        (root / path).write_text(content)
    return root


def git(root: Path, *args: str) -> str:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@t", *args]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def listed(root: Path) -> Listing:
    return list_project(root, threading.Event())


def walked(root: Path, seconds: float = 30) -> Listing:
    return walk(root, Patience(seconds, threading.Event()))


def names(listing: Listing) -> list[str]:
    return sorted((*listing.files, *listing.folders))


def fake_git(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """In place of the real one."""
    program = folder / "bin" / "git"
    write(program, f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


# What git knows


def test_a_repository_offers_what_is_kept_and_new_and_not_what_is_ignored_or_gone(tmp_path: Path) -> None:
    root = make(
        tmp_path / "repo", "kept.py", "src/a b.py", "src/deep/er.py", "gone.py", "out.log", "build/x", "new/n.py"
    )
    write(root / ".gitignore", "*.log\nbuild/\n")
    git(root, "init", "-q")
    git(root, "add", "kept.py", "src", "gone.py")
    (root / "gone.py").unlink()
    make(root, "node_modules/m/index.js", "src/__pycache__/a.pyc", ".venv/lib/x.py")
    assert names(listed(root)) == [
        ".gitignore", "kept.py", "new/", "new/n.py", "src/", "src/a b.py", "src/deep/", "src/deep/er.py",
    ]  # fmt: skip
    assert names(listed(root / "src")) == ["a b.py", "deep/", "deep/er.py"]


def test_our_own_ignore_files_count_in_a_repository_too(tmp_path: Path) -> None:
    root = make(tmp_path / "repo", "a.py", "big.bin", "data/one.csv", "data/keep.csv", "sub/big.bin", "secret/x/y")
    write(root / ".hiltignore", "*.bin\nsecret/\n")
    write(root / "data" / ".ignore", "*.csv\n!keep.csv\n")
    git(root, "init", "-q")
    git(root, "add", "-f", ".")
    assert names(listed(root)) == [
        ".hiltignore", "a.py", "data/", "data/.ignore", "data/keep.csv",
    ]  # fmt: skip


def test_a_folder_that_a_repository_around_it_ignores_is_looked_through(tmp_path: Path) -> None:
    root = make(tmp_path / "home", "project/main.py", "project/x.log")
    write(root / ".gitignore", "*\n")
    write(root / "project" / ".ignore", "*.log\n")
    git(root, "init", "-q")
    assert names(listed(root / "project")) == [".ignore", "main.py"]


def test_a_repository_within_is_one_folder(tmp_path: Path) -> None:
    root = make(tmp_path / "repo", "a.py", "vendor/lib/b.py")
    git(root, "init", "-q")
    git(root / "vendor" / "lib", "init", "-q")
    git(root / "vendor" / "lib", "add", ".")
    git(root / "vendor" / "lib", "commit", "-qm", "x")
    assert names(listed(root)) == ["a.py", "vendor/", "vendor/lib/"]
    git(root, "add", ".")  # and as a gitlink
    assert names(listed(root)) == ["a.py", "vendor/", "vendor/lib/"]


def test_nothing_that_a_hostile_repository_names_is_run(tmp_path: Path) -> None:
    root = make(tmp_path / "repo", "a.py")
    git(root, "init", "-q")
    git(root, "add", ".")
    ran = tmp_path / "ran"
    hook = root / "hooks" / "post-index-change"
    write(hook, f"#!/bin/sh\ntouch {ran}\n")
    hook.chmod(0o755)
    git(root, "config", "core.hooksPath", str(hook.parent))
    git(root, "config", "core.fsmonitor", str(hook))
    git(root, "config", "core.pager", f"touch {ran}")
    git(root, "config", "pager.ls-files", f"touch {ran}")
    before = (root / ".git" / "index").read_bytes()
    assert "a.py" in listed(root).files
    assert not ran.exists() and (root / ".git" / "index").read_bytes() == before


def test_a_repository_that_lies_in_the_project_as_plain_files_is_not_obeyed(tmp_path: Path) -> None:
    root = tmp_path / "repo"
    root.mkdir()
    git(root, "init", "-q", "--bare")
    git(root, "config", "core.bare", "false")
    git(root, "config", "core.worktree", str(tmp_path))
    write(root / "info" / "exclude", "HEAD\n")
    assert "HEAD" in listed(root).files


def test_variables_that_point_at_another_repository_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, other = make(tmp_path / "repo", "a.py", "b.log"), make(tmp_path / "other", "x.py")
    for each in (root, other):
        git(each, "init", "-q")
    write(root / ".gitignore", "*.log\n")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    assert listed(root).files == [".gitignore", "a.py"]


def test_whatever_git_answers_nothing_outside_the_project_is_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make(tmp_path / "repo", "ok.txt", "sub/in.txt", ".git/config", "node_modules/x.js")
    make(tmp_path, "secret.txt", "elsewhere/secret.txt")
    (root / "link").symlink_to(tmp_path / "elsewhere")
    (root / "leak").symlink_to(tmp_path / "secret.txt")
    (root / "fine").symlink_to("sub/in.txt")
    os.mkfifo(root / "pipe")
    hostile = ("../secret.txt", "/etc/passwd", "link/secret.txt", "leak", ".git/config", "sub/../../secret.txt", "pipe")
    odd = ("", "/", ".", "..", "./ok.txt", "a" * 5000, "a/" * 3000 + "b", "node_modules/x.js", "missing", "ok.txt/x")
    fine = ("ok.txt", "ok.txt", "sub/in.txt", "fine")
    answer = tmp_path / "answer"
    answer.write_bytes(b"".join(path.encode() + b"\0" for path in (*hostile, *odd, *fine)))
    fake_git(tmp_path, monkeypatch, f"cat {answer}")
    assert names(listed(root)) == ["fine", "ok.txt", "sub/", "sub/in.txt"]


@pytest.mark.parametrize("script", ["exit 128", "printf 'half'; exit 1", "printf 'x\\0'; kill -9 $$", "exit 0"])
def test_where_git_fails_the_folders_are_looked_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    root = make(tmp_path / "repo", "a.py")
    fake_git(tmp_path, monkeypatch, script)
    assert names(listed(root)) == ["a.py"]


def test_without_git_or_with_one_from_the_project_the_folders_are_looked_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make(tmp_path / "repo", "a.py")
    write(root / "git", f"#!/bin/sh\n: > {tmp_path}/ran\n")
    (root / "git").chmod(0o755)
    monkeypatch.chdir(root)
    for path in ("", "."):
        monkeypatch.setenv("PATH", path)
        assert names(listed(root)) == ["a.py", "git"]
    assert not (tmp_path / "ran").exists()


def test_a_git_that_hangs_is_ended_and_the_folders_are_looked_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make(tmp_path / "repo", "a.py")
    fake_git(tmp_path, monkeypatch, f"sleep 600 & echo $! > {tmp_path}/p; mv {tmp_path}/p {tmp_path}/pid; wait")
    monkeypatch.setattr(listing, "time", Leap(tmp_path / "pid", listing._GIT_SECONDS))
    assert names(listed(root)) == ["a.py"]
    child, end = int((tmp_path / "pid").read_text()), time.monotonic() + 10
    while not is_gone(child):
        assert time.monotonic() < end


def test_what_a_git_has_said_until_its_time_is_over_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make(tmp_path / "repo", "a.py", "b.py")
    fake_git(tmp_path, monkeypatch, "printf 'a.py\\0b.'; sleep 600")
    monkeypatch.setattr(listing, "_GIT_SECONDS", 2)
    found = listed(root)
    assert (found.files, found.cut) == (["a.py"], True)


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


# Looking through folders


def test_ignore_files_count_at_every_level_and_deeper_and_later_ones_override(tmp_path: Path) -> None:
    root = make(
        tmp_path / "p", "a.py", "a.log", "keep.log", "b/c.log", "b/c.txt", "b/d/e.txt", "out/x", "b/out/y", "top"
    )
    make(root, "node_modules/x.js", ".git/config", "b/__pycache__/z", ".venv/v", "b/deep/only.log")
    write(root / ".gitignore", "# a comment\n*.log\n/out/\n!keep.log\r\ntop\n[z-a]\n[[:x:]]\n!\n")
    write(root / ".hiltignore", "!top\n")
    write(root / "b" / ".ignore", "*.txt\n!c.log\n")
    write(root / "b" / "d" / ".hiltignore", "!e.txt\n")
    assert names(walked(root)) == [
        ".gitignore", ".hiltignore", "a.py", "b/", "b/.ignore", "b/c.log", "b/d/", "b/d/.hiltignore", "b/d/e.txt",
        "b/deep/", "b/out/", "b/out/y", "keep.log", "top",
    ]  # fmt: skip


def test_links_are_offered_when_they_lead_within_the_project_and_never_entered(tmp_path: Path) -> None:
    root = make(tmp_path / "p", "sub/in.txt")
    make(tmp_path, "outside/secret.txt", "p-other/x.txt")
    for name, target in (
        ("file", "sub/in.txt"), ("folder", "sub"), ("out", "../outside"), ("leak", "../outside/secret.txt"),
        ("loop", "loop"), ("self", "."), ("nowhere", "missing"), ("prefix", "../p-other"), ("sub/up", ".."),
    ):  # fmt: skip
        (root / name).symlink_to(target)
    assert names(walked(root)) == ["file", "folder/", "sub/", "sub/in.txt"]


def test_odd_names_are_given_as_they_are(tmp_path: Path) -> None:
    root = tmp_path / "p"
    root.mkdir()
    odd = [b"with space", b"two\nlines", b"\x1b[31mred", b"caf\xe9", "naïve İ".encode(), b"-rf", b"a\\b"]
    for name in odd:
        (root / os.fsdecode(name)).touch()
    os.mkfifo(root / "pipe")
    expected = sorted(os.fsdecode(name) for name in odd)
    assert sorted(walked(root).files) == expected
    git(root, "init", "-q")
    assert sorted(listed(root).files) == expected
    assert Index(expected).best("caf", 12) == [os.fsdecode(b"caf\xe9")]


def test_only_so_many_files_and_folders_are_taken_the_highest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make(tmp_path / "p", *(f"a/b/{number}" for number in range(30)), "top")
    monkeypatch.setattr(listing, "MOST", 10)
    found = walked(root)
    assert found.cut and len(found.files) == 10 and "top" in found.files
    git(root, "init", "-q")
    found = listed(root)
    assert found.cut and len(found.files) == 10
    many = make(tmp_path / "q", *(f"{number}/x" for number in range(40)))
    assert walked(many).cut and len(walked(many).folders) == 10


def test_looking_ends_when_its_time_is_over_and_does_not_go_down_for_ever(tmp_path: Path) -> None:
    root = make(tmp_path / "p", "a/" * 80 + "x", "b")
    found = walked(root)
    assert found.cut and "b" in found.files and 64 <= len(found.folders) <= 66
    late = walked(root, seconds=-1)
    assert late.cut and names(late) == []


def test_no_ignore_file_makes_looking_slow(tmp_path: Path) -> None:
    root = make(tmp_path / "p", "a" * 250, "b/" + "a" * 250, "y", "a/" * 60 + "c")
    write(root / ".gitignore", "*a*a*a*a*a*b\n" + "a/**/" * 6 + "b\n" + "x" * 2_000_000 + "\ny\n")
    os.mkfifo(root / "b" / ".gitignore")
    begun = time.process_time()
    assert len(walked(root).files) == 5  # what is behind the limit is not read
    assert time.process_time() - begun < 1


_PART = st.sampled_from(["a", "b", "ab", "c.log", "d", "x.py"])
_PATH = st.lists(_PART, min_size=1, max_size=4).map("/".join)
_PATTERN = st.sampled_from((
    "a", "/a", "a/", "*.log", "!c.log", "b/**", "**/d", "a/b", "/a/*", "!/a/b", "ab*", "!a", "*/x.py", "d/", "?", "!b/",
    "**", "*", "!*/", "a/**/d", "!**/d", "/**", "b*/", "!/a/", "[ab]", "\\a",
))  # fmt: skip
_RULES = st.lists(_PATTERN, min_size=0, max_size=4).map("\n".join)


@settings(patient, max_examples=40)
@given(st.sets(_PATH, max_size=12), _RULES, st.dictionaries(st.sampled_from(["a", "b", "a/b"]), _RULES, max_size=2))
def test_what_is_ignored_is_what_git_ignores(paths: set[str], rules: str, deeper: dict[str, str]) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder)
        for path in sorted(paths, key=len, reverse=True):
            if not (root / path).exists() and not any(parent.is_file() for parent in (root / path).parents):
                make(root, path)
        write(root / ".gitignore", rules)
        for where, more in deeper.items():
            if (root / where).is_dir():
                write(root / where / ".gitignore", more)
        git(root, "init", "-q")
        answer = git(root, "ls-files", "-z", "--others", "--exclude-standard").split("\0")[:-1]
        assert sorted(walked(root).files) == sorted(answer)
        assert sorted(listed(root).files) == sorted(answer)


_LINKED = st.sampled_from(["..", "../..", "../out", "../out/s", "a", "a/b", ".", "/", "/tmp", "c", "../p", "../pp"])


@settings(patient, max_examples=40)
@given(st.dictionaries(st.sampled_from(["a/l", "l", "a/b/l", "m", "c"]), _LINKED, max_size=5), st.booleans())
def test_nothing_outside_is_ever_reached(links: dict[str, str], in_git: bool) -> None:
    with TemporaryDirectory() as folder:
        make(Path(folder), "out/s", "out/t/u", "pp/v")
        root = make(Path(folder) / "p", "a/b/f", "a/g")
        for place, target in links.items():
            (root / place).symlink_to(target)
        if in_git:
            git(root, "init", "-q")
        found = listed(root)
        real = root.resolve()
        for path in (*found.files, *found.folders):
            assert (root / path).resolve(strict=True).is_relative_to(real)
            assert not any((root / parent).is_symlink() for parent in Path(path).parents)
        assert {"a/b/f", "a/g"} <= set(found.files) and {"a/", "a/b/"} <= set(found.folders)


# Finding


PATHS = [
    "README.md", "src/main.py", "src/mainframe.py", "src/hilt/context/project_files.py", "src/hilt/profile.py",
    "src/hilt/agent/session.py", "tests/agent/test_session.py", "docs/sessions/", "src/ProjectFiles.ts", "a/s/p.txt",
    "respond.py", "src/parser.py", "docs/readme.md", "lib/very/deep/down/in/here/main.py",
]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("main", "src/main.py"),
        ("mainfr", "src/mainframe.py"),
        ("profi", "src/hilt/profile.py"),
        ("projfi", "src/hilt/context/project_files.py"),
        ("pfp", "src/hilt/context/project_files.py"),
        ("proj_f", "src/hilt/context/project_files.py"),
        ("context/pr", "src/hilt/context/project_files.py"),
        ("hcp", "src/hilt/context/project_files.py"),
        ("session", "src/hilt/agent/session.py"),
        ("sessions", "docs/sessions/"),
        ("session.py", "src/hilt/agent/session.py"),
        ("tests/session", "tests/agent/test_session.py"),
        ("README", "README.md"),
        ("readme", "README.md"),
        ("PF", "src/ProjectFiles.ts"),
        ("src/pars", "src/parser.py"),
        ("herema", "lib/very/deep/down/in/here/main.py"),
    ],
)
def test_the_path_that_people_mean_comes_first(query: str, first: str) -> None:
    assert Index(PATHS).best(query, 12)[0] == first


def test_capitals_mean_themselves_and_small_letters_both() -> None:
    index = Index(["README.md", "readme.md", "Makefile"])
    assert index.best("README", 5) == ["README.md"] and set(index.best("readme", 5)) == {"README.md", "readme.md"}
    assert index.best("mf", 5) == ["Makefile"] and index.best("MF", 5) == []


def test_between_equals_the_shorter_path_wins_and_no_more_than_wanted_come() -> None:
    index = Index([f"{'x' * number}/name.py" for number in range(40, 0, -1)])
    assert index.best("name", 3) == ["x/name.py", "xx/name.py", "xxx/name.py"]
    assert index.best("nme", 0) == []


def test_what_is_in_no_path_is_not_found_and_takes_no_time() -> None:
    index = Index(["a", "b", "ab"])
    begun = time.process_time()
    for query in ("a\0b", "\0", "\0a", "a\0", "ba", "aa", "x" * 100_000):
        assert index.best(query, 5) == []
    assert time.process_time() - begun < 1


def test_a_letter_that_becomes_two_when_small_moves_nothing() -> None:
    assert Index(["İİİb"]).best("b", 5) == ["İİİb"]


_TEXT = st.text(alphabet="abAB/_-.[^]\\*+ \nİß\udce9", min_size=1, max_size=12)


@patient
@given(st.sets(_TEXT, max_size=30), st.lists(_TEXT.map(lambda text: text[:4]), min_size=1, max_size=4))
def test_every_result_has_the_querys_characters_in_order_and_none_is_missed(
    paths: set[str], queries: list[str]
) -> None:
    index = Index(paths)
    for query in (*queries, queries[0] + queries[-1]):  # one that goes on from another is narrowed down from it
        exact = query != query.lower()
        expected = {path for path in paths if has_in_order(path, query, exact=exact)}
        assert set(index.best(query, 100)) == expected


def has_in_order(path: str, query: str, *, exact: bool) -> bool:
    letters: Iterator[str] = iter(path)
    return all(any(wanted in (one, one if exact else one.lower()) for one in letters) for wanted in query)


def test_a_query_that_goes_on_after_few_were_left_still_finds_them_all() -> None:
    index = Index([*(f"src/mod{number}.py" for number in range(500)), "quartz/queue.py", "quartz/quiet.py"])
    assert index.best("q", 5) == ["quartz/queue.py", "quartz/quiet.py"]
    assert index.best("queu", 5) == ["quartz/queue.py"]
    assert index.best("qui", 5)[0] == "quartz/quiet.py"
    assert len(index.best("mod", 5)) == 5
    assert len(index.best("qt", 5)) == 2


def test_each_key_takes_a_moment_with_fifty_thousand_files() -> None:
    words = ("session", "agent", "Tool", "model_view", "render", "parse", "index", "config", "user", "HelperTest")

    def path(number: int) -> str:
        first, second, third, fourth = (words[number // step % 10] for step in (1, 10, 100, 1000))
        return f"{first}/{second}s/{third}_{fourth}{number}.py"

    index = Index(map(path, range(50_000)))
    for word in ("session_agent", "zebra", "tttttt", "s/e/r", "HelperTool", "cfgprs", "9999"):
        for end in range(1, len(word) + 1):
            times = []
            for _ in range(3):
                begun = time.thread_time()
                index.best(word[:end], 12)
                times.append(time.thread_time() - begun)
            assert min(times) < 0.033, word[:end]


# All together


async def test_what_is_there_is_known_after_refreshing_and_until_then_what_was(tmp_path: Path) -> None:
    root = make(tmp_path / "p", "b.py", "A.md", ".env", "src/x.py", "docs/y.md", ".ci/z")
    files = ProjectFiles(root)
    assert files.match("") == [] and files.match("x") == [] and len(files) == 0
    await files.refresh()
    assert files.match("") == ["docs/", "src/", ".ci/", "A.md", "b.py", ".env"]
    assert files.match("", limit=2) == ["docs/", "src/"]
    assert files.match("x.py") == ["src/x.py"] and files.match("src")[0] == "src/" and not files.cut
    make(root, "new.py")
    assert files.match("new") == []
    await files.refresh()
    assert files.match("new") == ["new.py"]


async def test_a_folder_that_is_not_there_has_nothing(tmp_path: Path) -> None:
    files = ProjectFiles(tmp_path / "missing")
    await files.refresh()
    assert files.match("") == [] and not files.cut


async def test_more_than_can_be_taken_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MOST", 3)
    files = ProjectFiles(make(tmp_path / "p", *(f"f{number}" for number in range(9))))
    await files.refresh()
    assert files.cut and len(files) == 3


async def test_cancelling_a_refresh_ends_git_and_the_thread_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "_GIT_SECONDS", 600)
    fake_git(tmp_path, monkeypatch, f"echo $$ > {tmp_path}/part; mv {tmp_path}/part {tmp_path}/pid; sleep 600")
    files = ProjectFiles(make(tmp_path / "p", "a.py"))
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        task = group.create_task(files.refresh())
        while not (pid := tmp_path / "pid").exists():
            await asyncio.sleep(0.01)
        task.cancel()
        while not is_gone(int(pid.read_text())):
            await asyncio.sleep(0.01)
    assert len(files) == 0
    await asyncio.get_running_loop().shutdown_default_executor()
