"""Confining a program with bubblewrap: namespaces of its own, and a file system made of what it may see.

The program cannot see, signal or trace any process but its own, has no privileges to lose, and all its processes end
when the first one does. Which places it sees is `layout`'s; whether it may run others is Landlock's, from inside.
"""

import os
import re
from pathlib import Path

from hilt.transport.layout import Layout

_NAMESPACES = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
_ALWAYS = (*_NAMESPACES, "--cap-drop", "ALL", "--new-session", "--die-with-parent")
_USUAL = ("/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin")
"""Looked at before PATH, in which a stranger may have come first."""
_PROBING = 5.0
_DISABLES_NAMESPACES = (0, 8)
_MOUNTED = {"ro": "--ro-bind-try", "rw": "--bind-try"}
"""What is gone since it was looked at is simply not there."""
_KERNEL = ("sys", "sysrq-trigger", "irq", "bus", "acpi", "fs")
"""Below /proc, what is the kernel's and not a process's."""
_known: tuple[tuple[str, ...], str] | None = None


def working() -> tuple[tuple[str, ...], str]:
    """The command that works here, or nothing and the reason. Found out once; blocks for some milliseconds."""
    global _known
    if _known is None:
        _known = _probe()
    return _known


def wrap(command: tuple[str, ...], made: Layout, argv: tuple[str, ...], *, network: bool) -> tuple[str, ...]:
    """`command` is what `working` found."""
    words = [*command]
    if not network:
        words.append("--unshare-net")
    shut = []
    for path in sorted({*made.places, *made.links}, key=lambda one: one.parts):
        if path in made.links:
            words += ["--symlink", made.links[path], str(path)]
            continue
        match made.places[path]:
            case "ro" | "rw" as kind:
                words += [_MOUNTED[kind], str(path), str(path)]
            case "empty":
                shut += ["--remount-ro", str(path)]
                words += ["--tmpfs", str(path)] if path != path.parent else []  # the root is empty to begin with
            case "void":
                words += ["--ro-bind", "/dev/null", str(path)]
            case "fresh":
                words += ["--tmpfs", str(path)]
            case "dev":
                words += ["--dev", str(path)]
            case "proc":
                words += ["--proc", str(path)]
                # The superuser may write there even without any privilege, and so get others to run programs.
                for name in _KERNEL:
                    words += [_MOUNTED["ro"], f"{path}/{name}", f"{path}/{name}"]
    # Only now: until here, the places in them were still to be made.
    return (*words, *shut, "--", *argv)


def _probe() -> tuple[tuple[str, ...], str]:
    import subprocess  # only here, and once

    program = _find()
    if program is None:
        return (), "bubblewrap is not installed"
    try:
        version = subprocess.run([program, "--version"], capture_output=True, timeout=_PROBING, check=True).stdout
        command = (program, *_ALWAYS, *_hardening(version.decode(errors="replace")))
        empty = Layout({Path("/"): "ro", Path("/dev"): "dev", Path("/proc"): "proc"})
        tried = wrap(command, empty, ("/bin/sh", "-c", ":"), network=False)
        subprocess.run(tried, capture_output=True, stdin=subprocess.DEVNULL, timeout=_PROBING, check=True)
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        return (), f"bubblewrap does not work here: {said or error}"
    except (OSError, subprocess.TimeoutExpired) as error:
        return (), f"bubblewrap does not work here: {error}"
    return command, ""


def _hardening(version: str) -> tuple[str, ...]:
    """What only newer ones know: a program that needs no namespaces inside its own should not be able to make any."""
    numbers = re.findall(r"\d+", version)
    modern = tuple(int(number) for number in numbers[:2]) >= _DISABLES_NAMESPACES
    return ("--disable-userns",) if modern else ()


def _find() -> str | None:
    for folder in (*_USUAL, *os.get_exec_path()):
        candidate = Path(folder, "bwrap")
        usable = candidate.is_absolute() and candidate.is_file() and os.access(candidate, os.X_OK)
        if usable and not _of_project(candidate):
            return str(candidate)
    return None


def _of_project(candidate: Path) -> bool:
    """A project could bring one that confines nothing."""
    try:
        here = Path.cwd()
    except OSError:
        return False  # it has been removed, so nothing lies in it
    return here != here.parent and any(place.is_relative_to(here) for place in (candidate, candidate.resolve()))
