"""Single defences, each seen from inside: namespaces, sockets, system calls, what is writable."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hilt.transport import landlock
from hilt.transport.sandbox import Confined, confine
from transport.confinement import DEADLINE, World, neighbours, run, without_bubblewrap, world

NAMESPACES = ("user", "pid", "mnt", "ipc", "uts", "net")


def inside(made: World, code: str, **changes: Any) -> Any:
    """What a few lines print as JSON, confined."""
    confined = confine((sys.executable, "-I", "-S", "-c", f"import json, os\n{code}"), made.policy(**changes))
    return said(made, confined)


def said(made: World, confined: Confined) -> Any:
    ended = subprocess.run(confined.argv, cwd=made.code, capture_output=True, timeout=DEADLINE, start_new_session=True)
    assert ended.returncode == 0, ended.stderr.decode()
    return json.loads(ended.stdout)


def test_it_has_namespaces_a_session_and_a_network_of_its_own() -> None:
    listing = f"print(json.dumps([os.readlink(f'/proc/self/ns/{{name}}') for name in {NAMESPACES}]))"
    ours = [os.readlink(f"/proc/self/ns/{name}") for name in NAMESPACES]
    with world() as made:
        theirs = inside(made, listing)
        assert not set(theirs) & set(ours)
        with_network = inside(made, listing, network=True)
        assert set(with_network) & set(ours) == {os.readlink("/proc/self/ns/net")}
        # Zero stands for a session that began outside.
        assert inside(made, "print(os.getsid(0))") != 0


def test_it_has_no_capabilities_and_cannot_get_any() -> None:
    listing = (
        "print(json.dumps([line.split() for line in open('/proc/self/status') if line.startswith(('Cap', 'NoN'))]))"
    )
    with world() as made:
        for programs in (True, False):
            status = dict(inside(made, listing, programs=programs, readable=()))
            assert status.pop("NoNewPrivs:") == "1"
            assert {int(value, 16) for value in status.values()} == {0}


def test_no_socket_of_another_program_lies_in_run() -> None:
    with world() as made:
        for changes in ({}, {"writable": None}, {"network": True}):
            found = inside(made, "print(json.dumps(os.listdir('/run')))", programs=True, **changes)
            assert set(found) <= {"current-system", "opengl-driver", "resolvconf", "systemd", "NetworkManager"}


def test_the_kernels_files_are_not_writable_even_for_one_who_may_write_everything() -> None:
    with world() as made:
        flags = "print(json.dumps([os.statvfs(path).f_flag & os.ST_RDONLY for path in ('/sys', '/proc/sys', '/')]))"
        assert inside(made, flags, writable=None) == [os.ST_RDONLY, os.ST_RDONLY, 0]


def test_devices_are_those_that_do_no_harm() -> None:
    with world() as made:
        found = inside(made, "print(json.dumps(os.listdir('/dev')))")
    usual = {"null", "zero", "full", "random", "urandom", "tty", "fd", "stdin", "stdout", "stderr", "core"}
    assert set(found) <= {*usual, "shm", "pts", "ptmx", "console", "mqueue"}


def test_a_network_in_common_brings_no_sockets_of_other_programs() -> None:
    with world() as made, neighbours(made):
        policy = made.policy(network=True, programs=True, readable=())  # nothing else needs Landlock
        outcomes = run(confine(made.argv, policy).argv, made)
    assert outcomes["connect to a server"] == "done"
    assert outcomes["connect to a nameless socket"] == "denied"


SOCKETS = """
import ctypes, errno, socket, tempfile
def tried(attempt):
    try: attempt()
    except OSError as error: return errno.errorcode[error.errno]
    return "done"
libc = ctypes.CDLL(None, use_errno=True)
def ring():
    if libc.syscall(425, 1, ctypes.create_string_buffer(120)) < 0: raise OSError(ctypes.get_errno(), "")
print(json.dumps({
    "pair": tried(socket.socketpair), "ring": tried(ring), "packet": tried(lambda: socket.socket(socket.AF_PACKET)),
    "unix": tried(lambda: socket.socket(socket.AF_UNIX)), "inet": tried(lambda: socket.socket(socket.AF_INET)),
    "temporary": tempfile.gettempdir(),
}))
"""


def test_landlock_alone_leaves_pairs_of_sockets_and_a_place_for_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_bubblewrap(monkeypatch, tmp_path)
    with world() as made:
        shut = inside(made, SOCKETS)
        assert shut.pop("temporary") == str(made.data)
        assert shut == {"pair": "done", "ring": "ENOSYS", "packet": "EACCES", "unix": "EACCES", "inet": "EACCES"}
        open_ = inside(made, SOCKETS, network=True)
        assert (open_["inet"], open_["unix"], open_["pair"], open_["ring"]) == ("done", "EACCES", "done", "ENOSYS")


@pytest.mark.parametrize("network", [False, True])
def test_on_a_processor_whose_calls_are_not_known_the_gaps_are_named(
    network: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_bubblewrap(monkeypatch, tmp_path)
    monkeypatch.setattr(landlock, "_filters", lambda: False)
    with world() as made, neighbours(made):
        confined = confine(made.argv, made.policy(network=network))
        outcomes = run(confined.argv, made)
    assert outcomes["connect to a server"] == ("done" if network else "denied")
    assert outcomes["send a datagram"] == "done"
    assert outcomes["connect to a socket file"] == "done"
    assert ("it can send datagrams to the network" in confined.gaps) == (not network)
    assert "it can talk to your other programs through their sockets" in confined.gaps


@pytest.mark.parametrize("means", ["bubblewrap", "bubblewrap alone", "landlock"])
def test_files_can_be_moved_between_its_own_directories(
    means: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Landlock has a right of its own for that, which older kernels deny to all who have rules.
    if means == "landlock":
        without_bubblewrap(monkeypatch, tmp_path)
    if means == "bubblewrap alone":
        monkeypatch.setattr(landlock, "_known", 0)
    code = "os.makedirs('a/b'); open('a/x', 'w').close(); os.rename('a/x', 'a/b/y'); os.truncate('a/b/y', 9); "
    with world() as made:
        assert inside(made, f"os.chdir({str(made.data)!r}); {code}os.remove('a/b/y'); print(1)") == 1


def test_what_was_written_to_the_temporary_directory_is_gone_with_it() -> None:
    with world() as made:
        code = (
            "open('/tmp/left', 'w').close(); open('/var/tmp/left', 'w').close(); print(json.dumps(os.listdir('/tmp')))"
        )
        # What runs the program may itself lie there.
        usual = set(inside(made, "print(json.dumps(os.listdir('/tmp')))", readable=()))
        assert set(inside(made, code, readable=())) == usual | {"left"}
        assert set(inside(made, "print(json.dumps(os.listdir('/tmp')))", readable=())) == usual
    assert not Path("/var/tmp/left").exists()
