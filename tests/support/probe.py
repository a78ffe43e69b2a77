"""A program that tries what a sandbox should keep it from, and what it should not, and says what became of each.

    probe.py '{"home": …, "port": …}'

One JSON line per attempt: `try`, `outcome` (`done`, `denied`, `absent`) and `detail`. It knows of nothing but the
standard library, so that it runs wherever a Python does; what it needs to know comes with its argument.
"""

import ctypes
import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

PATIENCE = 2.0
LIFETIME = 30
"""Seconds after which what should not outlive it ends by itself."""

_ABSENT = {errno.ENOENT, errno.ESRCH, errno.ENOTDIR, errno.ECONNREFUSED, errno.ENETUNREACH, errno.EHOSTUNREACH}
_PTRACE_ATTACH, _PTRACE_DETACH = 16, 17
_NEW_USER = 0x10000000

libc = ctypes.CDLL(None, use_errno=True)


def main(known: dict[str, Any]) -> None:
    for name, attempt in ATTEMPTS.items():
        try:
            outcome, detail = "done", attempt(known) or ""
        except TimeoutError as error:
            outcome, detail = "absent", str(error)
        except OSError as error:
            outcome, detail = ("absent" if error.errno in _ABSENT else "denied"), str(error)
        print(json.dumps({"try": name, "outcome": outcome, "detail": str(detail)}), flush=True)


def read(*path: str) -> Callable[[dict[str, Any]], str]:
    def attempt(known: dict[str, Any]) -> str:
        with open(os.path.join(known[path[0]], *path[1:])) as file:
            return file.read()

    return attempt


def write(*path: str) -> Callable[[dict[str, Any]], None]:
    def attempt(known: dict[str, Any]) -> None:
        with open(os.path.join(known[path[0]], *path[1:]), "a") as file:
            file.write("the probe was here\n")

    return attempt


def list_the_keys(known: dict[str, Any]) -> str:
    if not (names := os.listdir(os.path.join(known["home"], ".ssh"))):
        raise FileNotFoundError(errno.ENOENT, "there is nothing in it")
    return " ".join(names)


def write_through_a_link(known: dict[str, Any]) -> None:
    link = os.path.join(known["data"], "link")
    if not os.path.islink(link):
        os.symlink(os.path.join(known["outside"], "victim"), link)
    write("data", "link")(known)


def link_a_key(known: dict[str, Any]) -> None:
    """A second name for it, in a directory that is its own."""
    os.link(os.path.join(known["home"], ".ssh", "id"), os.path.join(known["data"], "stolen"))


def connect_tcp(known: dict[str, Any]) -> None:
    with socket.create_connection(("127.0.0.1", known["tcp"]), timeout=PATIENCE):
        pass


def send_udp(known: dict[str, Any]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.settimeout(PATIENCE)
        udp.connect(("127.0.0.1", known["udp"]))
        udp.send(b"anybody?")
        udp.recv(16)


def connect_unix(address: str) -> Callable[[dict[str, Any]], None]:
    def attempt(known: dict[str, Any]) -> None:
        with socket.socket(socket.AF_UNIX) as unix:
            unix.settimeout(PATIENCE)
            unix.connect(known[address].replace("@", "\0"))

    return attempt


def see_a_sibling(known: dict[str, Any]) -> None:
    with open(f"/proc/{known['sibling']}/cmdline") as file:
        if known["token"] not in file.read():
            raise ProcessLookupError(errno.ESRCH, "another one has its number here")


def signal_a_sibling(known: dict[str, Any]) -> None:
    os.kill(known["sibling"], signal.SIGCONT)


def trace_a_sibling(known: dict[str, Any]) -> None:
    check(libc.ptrace(_PTRACE_ATTACH, known["sibling"], None, None))
    os.waitpid(known["sibling"], 0x40000000)  # also one that is nobody's child
    check(libc.ptrace(_PTRACE_DETACH, known["sibling"], None, None))


def read_anothers_memory(known: dict[str, Any]) -> None:
    """What a key in an environment variable is, in the end."""
    with open(f"/proc/{known['sibling']}/environ", "rb") as file:
        if known["token"].encode() not in file.read():
            raise ProcessLookupError(errno.ESRCH, "another one has its number here")


def outlive(known: dict[str, Any]) -> None:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for fd in (0, 1, 2):
                os.close(fd)
            time.sleep(LIFETIME)
        os._exit(0)
    os.wait()


def run_a_program(known: dict[str, Any]) -> None:
    subprocess.run(["/bin/true"], check=True, capture_output=True)


def run_its_own(known: dict[str, Any]) -> None:
    """Once more what it was started as."""
    subprocess.run([sys.executable, "-I", "-S", "-c", ""], check=True, capture_output=True)


def run_what_it_wrote(known: dict[str, Any]) -> None:
    program = os.path.join(known["data"], "program")
    shutil.copy("/bin/true", program)
    subprocess.run([program], check=True, capture_output=True)


def mount(known: dict[str, Any]) -> None:
    target = known["data"].encode()
    check(libc.mount(b"none", target, b"tmpfs", 0, None))
    check(libc.umount(target))


def make_a_namespace(known: dict[str, Any]) -> None:
    in_a_fork(lambda: check(libc.unshare(_NEW_USER)))


def write_to_the_kernel(known: dict[str, Any]) -> None:
    os.close(os.open("/proc/sys/kernel/domainname", os.O_WRONLY))


def in_a_fork(attempt: Callable[[], object]) -> None:
    """What would change the probe itself."""
    if (pid := os.fork()) == 0:
        try:
            attempt()
        except OSError as error:
            os._exit(error.errno or 255)
        os._exit(0)
    if code := os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
        raise OSError(code, os.strerror(code))


def check(result: int) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


ATTEMPTS: dict[str, Callable[[dict[str, Any]], object]] = {
    "read a key": read("home", ".ssh", "id"),
    "list the keys": list_the_keys,
    "link a key": link_a_key,
    "read the host's keys": read("hilt", "auth.json"),
    "write the host's home": write("hilt", "config.toml"),
    "create a secret that was missing": write("home", ".netrc"),
    "read the home": read("home", "notes"),
    "write outside": write("outside", "mark"),
    "write through a link": write_through_a_link,
    "write its code": write("code", "mark"),
    "write its data": write("data", "mark"),
    "read the system": read("system"),
    "read the project": read("project", "source"),
    "write the project": write("project", "mark"),
    "write to /tmp": write("temporary"),
    "share memory": write("memory"),
    "connect to a server": connect_tcp,
    "send a datagram": send_udp,
    "connect to a socket file": connect_unix("socket"),
    "connect to a nameless socket": connect_unix("abstract"),
    "see a sibling": see_a_sibling,
    "signal a sibling": signal_a_sibling,
    "trace a sibling": trace_a_sibling,
    "read a sibling's memory": read_anothers_memory,
    "outlive the host": outlive,
    "run a program": run_a_program,
    "run its own program": run_its_own,
    "run what it wrote": run_what_it_wrote,
    "mount something": mount,
    "make a namespace": make_a_namespace,
    "write to the kernel": write_to_the_kernel,
}

if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
