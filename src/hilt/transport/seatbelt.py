"""Confining a program on macOS: the profile for `sandbox-exec`, written from the policy.

Later rules win over earlier ones, so a profile goes from the general to the particular: what holds for everything,
what was granted, what is hidden, and what belongs to the program itself.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from hilt.transport.policy import Policy
from hilt.transport.runtimes import Runtime, real_path

PROGRAM = Path("/usr/bin/sandbox-exec")

_SYSTEM = (
    *(
        "/usr",
        "/bin",
        "/sbin",
        "/opt",
        "/nix",
        "/System",
        "/Library",
        "/Applications/Xcode.app",
        "/dev",
        "/private/etc",
    ),
    *("/private/etc", "/private/var/db/dyld", "/private/var/db/timezone", "/private/var/select"),
)
_TEMPORARY = ("/private/tmp", "/private/var/tmp", "/private/var/folders")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/dtracehelper")
_SERVICES = (
    "com.apple.system.logger",
    "com.apple.system.notification_center",
    "com.apple.system.opendirectoryd.libinfo",
)
_NETWORK_SERVICES = ("com.apple.SystemConfiguration.configd", "com.apple.dnssd.service", "com.apple.trustd.agent")
_READ, _BOTH = "file-read*", "file-read* file-write*"


def wrap(program: Runtime, policy: Policy) -> tuple[str, ...]:
    own_temporary = f"TMPDIR={policy.data}"  # the usual one is everybody's, and not writable for it
    return ("/usr/bin/env", own_temporary, str(PROGRAM), "-p", profile(policy, program), *program.argv)


def gaps(policy: Policy) -> tuple[str, ...]:
    """What the profile does not hold a program to."""
    asking = ("it can ask the system's services to do things for it",) if policy.level == "standard" else ()
    return (*asking, "it sees which files exist")


def profile(policy: Policy, program: Runtime) -> str:
    """The text of it. Every path is given by its real name, for that is what the kernel compares."""
    return "\n".join(("(version 1)", *_general(policy), *_files(policy, program), *_abilities(policy, program), ""))


def quoted(text: str) -> str:
    """As a string of the profile's language, which no character of a path can end."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r") + '"'


def _general(policy: Policy) -> Iterator[str]:
    if policy.level == "standard":
        yield "(allow default)"
        yield "(deny signal (target others))"
        yield "(deny process-info* (target others))"
        yield "(deny mach-priv-task-port)"
        yield "(deny lsopen)"
    else:
        yield "(deny default)"
        yield "(allow process-fork)"
        yield "(allow sysctl-read)"
        yield "(allow signal (target same-sandbox))"
        yield "(allow process-info* (target same-sandbox))"
        yield f"(allow mach-lookup{_each('global-name', _SERVICES)})"
    yield "(deny appleevent-send)"
    yield "(deny network*)"


def _files(policy: Policy, program: Runtime) -> Iterator[str]:
    yield "(deny file-write*)"
    yield from _reading(policy)
    if policy.writable is None:
        yield f"(allow {_BOTH})"
    yield from _rule("allow", _BOTH, policy.writable or ())
    yield from _rule("allow", _READ, program.needed)
    yield from _own(policy)
    yield from _rule("deny", _BOTH, policy.hidden)
    hidden = {real_path(path) for path in policy.hidden}
    if any(above in hidden for path in (policy.code, policy.data, *policy.own) for above in real_path(path).parents):
        yield from _own(policy)  # both usually lie within what is hidden
    # A directory on the way must be there for a path to be looked up; that says nothing of what is in it.
    yield "(allow file-read-metadata)"
    yield f"(allow file-write-data{_each('literal', _DEVICES)})"


def _reading(policy: Policy) -> Iterator[str]:
    if policy.readable is None or policy.level == "standard":
        yield f"(allow {_READ})"
    else:
        yield f"(deny {_READ})"
        yield f"(allow {_READ}{_each('subpath', _SYSTEM)})"
    yield f"(deny {_READ}{_each('subpath', _TEMPORARY)})"
    if policy.readable is not None:
        yield from _rule("deny", _READ, (policy.home, *policy.closed))
        yield from _rule("allow", _READ, policy.readable)


def _own(policy: Policy) -> Iterator[str]:
    if real_path(policy.code) in {real_path(path) for path in policy.writable or ()}:
        yield from _rule("allow", _BOTH, (policy.code,))
    else:
        yield from _rule("deny", "file-write*", (policy.code,))
        yield from _rule("allow", _READ, (policy.code,))
    yield from _rule("allow", _READ, policy.own)
    yield from _rule("allow", _BOTH, (policy.data,))


def _abilities(policy: Policy, program: Runtime) -> Iterator[str]:
    if policy.network:
        yield "(allow network-outbound (remote ip))"
        yield "(allow network-inbound (local ip))"
        yield "(allow network-bind (local ip))"
        yield '(allow network-outbound (literal "/private/var/run/mDNSResponder"))'
        yield "(allow system-socket)"
        yield f"(allow mach-lookup{_each('global-name', _NETWORK_SERVICES)})"
    if policy.programs:
        yield "(allow process-exec*)"
    else:
        yield "(deny process-exec*)"
        yield f"(allow process-exec*{_each('literal', map(str, program.executed))})"


def _rule(verb: str, what: str, paths: Iterable[Path]) -> Iterator[str]:
    if names := [str(real_path(path)) for path in paths]:
        yield f"({verb} {what}{_each('subpath', names)})"


def _each(kind: str, names: Iterable[str]) -> str:
    return "".join(f" ({kind} {quoted(name)})" for name in names)
