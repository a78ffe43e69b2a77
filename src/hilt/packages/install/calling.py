"""Calling git: with which settings, for how long, and what of its words anybody hears.

The user's configuration of git does count, for it is how they reach their hosts: credential helpers, proxies,
certificates, ssh. What could make it run something, ask somebody or reach anything else does not, nor do variables
that point it at other repositories. Each call ends in time, with all the programs it started.
"""

import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from hilt.errors import PackageError
from hilt.packages.install.sources import Git
from hilt.packages.layout import CAPS, Caps
from hilt.packages.lookup import look_up
from hilt.packages.members import shown

Progress: TypeAlias = Callable[[str], None]

PATIENCE = 600.0
"""Seconds one call of git may take."""
_STEP = 0.1
_REAPING = 5.0
_MOST_SAID = 16 * 1024 * 1024
_LAST_WORDS = 2000
_CHUNK = 1 << 16

_OURS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.alternateRefsCommand=",
    "fetch.fsckObjects=true",
    "fetch.recurseSubmodules=false",
    "fetch.writeCommitGraph=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "transfer.bundleURI=false",
    "transfer.credentialsInUrl=die",
    "credential.interactive=false",
)
_KEPT = ("GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_ASKPASS", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM")
"""Of git's variables, those by which a user reaches their hosts."""
_KEPT_FAMILIES = ("GIT_SSL_", "GIT_PROXY_", "GIT_HTTP_", "GIT_CONFIG_NOSYSTEM")


@contextmanager
def reading(repository: Path, git: Git) -> Iterator["subprocess.Popen[bytes]"]:
    """The process that gives objects by their names, ended with the block."""
    with _running(git, ["cat-file", "--batch"], repository, subprocess.PIPE) as process:
        # Reading from it waits; should it hang, it is ended, and then there is nothing more to wait for.
        watchdog = threading.Timer(PATIENCE, os.killpg, (process.pid, signal.SIGKILL))
        watchdog.start()
        try:
            yield process
        except BrokenPipeError:
            raise PackageError(f"git has ended while {shown(git.url)} was read", hint="try again") from None
        finally:
            watchdog.cancel()


def run(
    git: Git, args: list[str], repository: Path | None = None, progress: Progress | None = None, caps: Caps = CAPS
) -> bytes:
    """What it wrote to its output. Ended when it takes too long, says or fetches too much, or the caller leaves."""
    watch, said = _Watch(git, repository, caps), _Said(progress)
    with (
        _running(git, args, repository, subprocess.DEVNULL) as process,
        selectors.DefaultSelector() as selector,
    ):
        assert process.stdout and process.stderr
        selector.register(process.stdout, selectors.EVENT_READ, said.output)
        selector.register(process.stderr, selectors.EVENT_READ, said.complaint)
        while selector.get_map():
            for key, _ in selector.select(_STEP):
                data = os.read(key.fd, _CHUNK)
                key.data(data)
                if not data:
                    selector.unregister(key.fileobj)
            watch.look(said)
        watch.wait(process)
    if process.returncode:
        raise _failure(git, said.last)
    return bytes(said.out)


class _Said:
    """What git says, as far as anybody needs it."""

    def __init__(self, progress: Progress | None) -> None:
        self.out = bytearray()
        self.last = ""
        self._line = b""
        self._progress = progress

    def output(self, data: bytes) -> None:
        self.out += data

    def complaint(self, data: bytes) -> None:
        *lines, rest = (self._line + data).replace(b"\r", b"\n").split(b"\n")
        if not data:
            lines.append(rest)
        self._line = rest[-_LAST_WORDS:] if data else b""
        for line in lines:
            text = shown(line.decode(errors="replace")[:_LAST_WORDS]).strip()
            if text and self._progress:
                self._progress(text)
            if text and not text.startswith("remote: "):
                self.last = f"{self.last}\n{text}"[-_LAST_WORDS:].lstrip("\n")


class _Watch:
    """Over what one call of git uses: time, memory of ours, the disk."""

    def __init__(self, git: Git, repository: Path | None, caps: Caps) -> None:
        self._git, self._repository, self._caps = git, repository, caps
        self._deadline = time.monotonic() + PATIENCE
        self._next = 0.0

    def look(self, said: _Said) -> None:
        """Raises `PackageError` when it is too much."""
        if len(said.out) > _MOST_SAID:
            raise PackageError(f"{shown(self._git.url)} lists more than any repository needs", hint="check the address")
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _STEP
        if now > self._deadline:
            raise self._too_slow()
        if self._repository and _weight(self._repository) > self._caps.size:
            raise PackageError(
                f"{shown(self._git.url)} sends more than {self._caps.size} bytes",
                hint="an extension's repository should hold only the extension",
            )

    def wait(self, process: "subprocess.Popen[bytes]") -> None:
        try:
            process.wait(max(0.0, self._deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise self._too_slow() from None

    def _too_slow(self) -> PackageError:
        url = shown(self._git.url)
        return PackageError(f"{url} was not fetched within {PATIENCE:.0f} seconds", hint="check the network, try again")


def _weight(repository: Path) -> int:
    """What its objects take, as they come in; they may be moved while this looks."""
    total = 0
    for folder, _, names in os.walk(repository):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size  # noqa: PTH118 - ten times a second
            except FileNotFoundError:
                continue
    return total


@contextmanager
def _running(git: Git, args: list[str], repository: Path | None, stdin: int) -> Iterator["subprocess.Popen[bytes]"]:
    """Ended with the block, and with all its helpers."""
    # An interrupt while it is being started would leave a process of which nobody knows: it has to wait a moment.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    process: subprocess.Popen[bytes] | None = None
    try:
        process = _start(git, args, repository, stdin)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        yield process
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if process is not None:
            _end(process)


def _start(git: Git, args: list[str], repository: Path | None, stdin: int) -> "subprocess.Popen[bytes]":
    program = look_up("git", os.environ.get("PATH", os.defpath))
    if not program.found:
        raise PackageError(
            f"git is needed to install {shown(git.url)}, and is not on PATH{program.but}",
            hint="install git, or download the extension and give its path",
        )
    settings = [part for setting in _OURS for part in ("-c", setting)]
    place = [f"--git-dir={repository}"] if repository else []
    try:
        return subprocess.Popen(
            [program.found, *settings, *place, *args],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if stdin == subprocess.PIPE else subprocess.PIPE,
            env=_environment(os.environ, git),
            cwd="/",
            # Of its own: one signal ends all its helpers, and none of them finds a terminal to ask at.
            start_new_session=True,
        )
    except OSError as error:
        raise PackageError(
            f"git cannot be started: {error.strerror or error}", hint="check the installed git"
        ) from error


def _environment(given: Mapping[str, str], git: Git) -> dict[str, str]:
    kept = {
        name: value
        for name, value in given.items()
        if not name.startswith("GIT_") or name in _KEPT or name.startswith(_KEPT_FAMILIES)
    }
    return kept | {
        # Not one more, wherever a server or a setting would lead.
        "GIT_ALLOW_PROTOCOL": "file" if git.local else "https:ssh",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "LC_ALL": "C",
    }


def _end(process: "subprocess.Popen[bytes]") -> None:
    """At once, with all its helpers; one that has ended is only reaped."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # nothing is left of it
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            try:
                stream.close()
            except BrokenPipeError:
                pass
    try:
        process.wait(_REAPING)
    except subprocess.TimeoutExpired:
        pass  # stuck in the kernel; nothing more can be done about it from here


def _failure(git: Git, last: str) -> PackageError:
    hint = "check the address and the network"
    if any(word in last for word in ("could not read Username", "Authentication failed", "Permission denied")):
        hint = "check that you may read it, and that git's credential helper or your ssh key works without asking"
    elif "Host key verification failed" in last:
        hint = f"connect once by hand, so that ssh knows the host, as in: git ls-remote {shown(git.url)}"
    elif "not our ref" in last or "unadvertised" in last:
        hint = "the server has no such commit, or gives away only branches and tags: name one of these"
    return PackageError(f"git could not get {shown(git.url)}: {last or 'it did not say why'}", hint=hint)
