"""What a program is held to from its first moment, and how far it stands back."""

import os
import resource
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hilt.transport.launch import Spec
from hilt.transport.process import started
from hilt.transport.trampoline import Limits, stand_back, wrap
from transport.children import PATH, Heard, python, shell, until

MEMORY = Limits(memory=300 << 20)


@contextmanager
def ours(which: int, soft: int) -> Iterator[None]:
    """With this soft limit for ourselves."""
    before = resource.getrlimit(which)
    resource.setrlimit(which, (soft, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(which, before)


async def said(spec: Spec, lines: int) -> list[bytes]:
    async with started(spec) as child:
        heard = Heard()
        child.channel.listen(heard)
        await until(lambda: len(heard.lines) >= lines)
        return heard.lines


def test_without_limits_the_program_is_started_itself() -> None:
    assert wrap(("/bin/true", "x"), "stdio", Limits()) == ("/bin/true", "x")
    assert wrap(("/bin/true", "x"), "stdio", Limits(nice=5)) == ("/bin/true", "x")


async def test_every_limit_holds_from_the_first_moment_and_cannot_be_raised(tmp_path: Path) -> None:
    limits = Limits(memory=1 << 30, processes=5000, files=123, file_size=51200, cpu=77, core=0)
    each = "for w in d n f t c; do ulimit -$k -$w; done; ulimit -$k -p 2>/dev/null || ulimit -$k -u"
    script = f"for k in S H; do {each}; done"
    lines = await said(shell(script, tmp_path, limits=limits), 12)
    assert lines[:6] == [b"1048576", b"123", b"100", b"77", b"0", b"5000"]
    assert lines[6:] == [b"1048576", b"123", b"100", b"78", b"0", b"5000"]


async def test_a_limit_never_gives_more_than_holds_already(tmp_path: Path) -> None:
    soft, hard = 200, resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with ours(resource.RLIMIT_NOFILE, soft):
        lines = await said(shell("ulimit -S -n; ulimit -H -n", tmp_path, limits=Limits(files=300)), 2)
        assert lines == [b"200", b"300"], "programs that need more raise it themselves, up to there"
        lines = await said(shell("ulimit -S -n; ulimit -H -n", tmp_path, limits=Limits(files=1 << 40)), 2)
        assert lines == [b"200", b"%d" % hard]


EATERS = {
    "python": (sys.executable, "-I", "-S", "-c", "kept = [b'x' * 2**20 for _ in range(600)]"),
    "node": ("node", "-e", "const k=[]; for (let i=0;i<600;i++) k.push(Buffer.alloc(1<<20, 1))"),
    "perl": ("perl", "-e", 'my @kept; push @kept, "x" x (1 << 20) for 1 .. 600'),
}


@pytest.mark.parametrize("language", EATERS)
async def test_memory_runs_out_in_any_language(tmp_path: Path, language: str) -> None:
    word, *rest = EATERS[language]
    if not (program := shutil.which(word)):
        pytest.skip(f"there is no {word} here")
    async with started(Spec((program, *rest), tmp_path, PATH, limits=MEMORY, grace=0.3)) as child:
        exit_ = await child.exited()
        assert exit_.code != 0
        assert "memory" in child.complaints().lower()


async def test_address_space_that_is_only_reserved_does_not_count(tmp_path: Path) -> None:
    code = "import mmap; m = mmap.mmap(-1, 64 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, 0); print(len(m))"
    spec = python(code, tmp_path)
    lines = await said(Spec(spec.argv, tmp_path, PATH, limits=MEMORY, grace=0.3), 1)
    assert lines == [b"%d" % (64 << 30)]


async def test_it_stands_back_with_all_that_it_starts_and_its_whole_share_does(tmp_path: Path) -> None:
    here = os.getpriority(os.PRIO_PROCESS, 0)
    code = f"import os, time, subprocess\nwhile os.nice(0) < {here + 7}: time.sleep(0.001)\nsubprocess.run(['nice'])"
    spec = Spec(python(code, tmp_path).argv, tmp_path, PATH, limits=Limits(nice=7), grace=0.3)
    assert await said(spec, 1) == [b"%d" % (here + 7)]
    async with started(Spec(("/bin/cat",), tmp_path, PATH, limits=Limits(nice=7), grace=0.3)) as child:
        share = Path(f"/proc/{child.pid}/autogroup")
        assert os.getpriority(os.PRIO_PROCESS, child.pid) == here + 7
        if os.getuid() == 0 and share.exists():  # others may be refused, now and then
            assert share.read_text().endswith(f"nice {here + 7}\n")
    assert os.getpriority(os.PRIO_PROCESS, 0) == here


async def test_it_stands_back_behind_us_wherever_we_stand(tmp_path: Path) -> None:
    code = """
import os, sys
from hilt.transport.trampoline import stand_back
os.nice(15)
pid = os.posix_spawn("/bin/sleep", ["sleep", "20"], {}, setpgroup=0)
stand_back(pid, 2)
print(os.getpriority(os.PRIO_PROCESS, pid) - os.getpriority(os.PRIO_PROCESS, 0), flush=True)
stand_back(pid, 19)
print(os.getpriority(os.PRIO_PROCESS, pid), flush=True)
os.kill(pid, 9)
"""
    spec = Spec((sys.executable, "-c", code), tmp_path, dict(os.environ), grace=0.3)
    assert await said(spec, 2) == [b"2", b"19"]


def test_one_that_has_ended_already_is_no_error() -> None:
    pid = os.posix_spawn("/bin/true", ["true"], {}, setpgroup=0)
    os.waitpid(pid, 0)
    stand_back(pid, 5)
    stand_back(2**22 + 1, 5)
