"""What an extension may do: what its manifest asks for, and what the user made of that.

Owns the words and their meaning. Who holds an extension to them is others' business: the sandbox for files, network
and programs, the host for everything that goes through it.
"""

import re
from collections.abc import Iterable

from msgspec import Struct

_WHOLE = ("fs.read", "fs.write", "net", "env", "exec")
"""Also without an argument, which then means all of it."""
_FIXED = ("conversation:read", "conversation:write", "ui:submit", "tools:call")
_ARGUMENTS = {
    "fs.read": re.compile(r"(\$\{project\}|\$\{data\}|~|)(/[^\x00-\x1f\x7f]*)?"),
    "net": re.compile(r"[A-Za-z0-9.*-]{1,253}(:[0-9]{1,5})?"),
    "env": re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}"),
    "auth": re.compile(r"[a-z0-9][a-z0-9._-]{0,63}"),
}
_ARGUMENTS["fs.write"] = _ARGUMENTS["fs.read"]
_FITTING = {
    "fs.read": "an absolute path, or one that begins with ~, ${project} or ${data}",
    "net": "a host, with or without a port",
    "env": "the name of a variable",
    "auth": "the name of a provider, such as openai",
}
_FITTING["fs.write"] = _FITTING["fs.read"]
KNOWN = "fs.read[:PATH], fs.write[:PATH], net[:HOST], env[:NAME], exec, auth:PROVIDER, " + ", ".join(_FIXED)
CONSENTED = ("env", "auth")
"""These are never had for the asking: the user grants each by name."""
_ASKED_FOR = ("auth", "conversation")
"""These the host hands out, or not, whatever else the program can reach."""

_MEANINGS = {
    "fs.read": "read files",
    "fs.write": "write files",
    "net": "use the network",
    "env": "see environment variables",
    "exec": "run other programs",
    "conversation:read": "read the conversation",
    "conversation:write": "change what is said in the conversation",
    "ui:submit": "send messages and commands as if you had typed them",
    "tools:call": "call the agent's tools",
}


class Permissions(Struct, frozen=True):
    """What counts, once the user's grants and refusals are applied."""

    full: bool = True
    """Its manifest has no list: it may do what the user may, but for what was revoked and what needs consent."""
    granted: tuple[str, ...] = ()
    revoked: tuple[str, ...] = ()
    consented: bool = False
    """The user was told of the full access, and agreed to it."""

    def allows(self, permission: str) -> bool:
        """Whether it may do this one thing. A path is judged by `paths`."""
        kind = permission.partition(":")[0]
        whole = kind if kind in _WHOLE else permission
        if {permission, whole} & set(self.revoked):
            return False
        if {permission, whole} & set(self.granted):
            return True
        if permission == "net" and self._single("net"):
            return True  # no system can be told of single hosts
        return self.full and kind not in CONSENTED

    def may_ask(self, permission: str) -> bool:
        """Whether the host gives it this when it asks: keys and the conversation are more than files and programs.

        One with full access has them once the user agreed to that; until then, as anybody, what was granted by name.
        """
        kind = permission.partition(":")[0]
        if not self.full or kind not in _ASKED_FOR or permission in self.granted:
            return self.allows(permission)
        return self.consented and permission not in self.revoked

    def paths(self, kind: str) -> tuple[str, ...] | None:
        """The paths it may read or write, as they were written; None for all of them."""
        return None if self.allows(kind) else self._single(kind)

    def withdrawn(self, kind: str) -> tuple[str, ...]:
        """The paths that were taken away by name, whatever else it may read or write."""
        return tuple(one.partition(":")[2] for one in self.revoked if one.startswith(f"{kind}:"))

    @property
    def confined(self) -> bool:
        """Whether there is anything a sandbox would have to keep it from."""
        return not self.full or any(
            one.partition(":")[0] in ("fs.read", "fs.write", "net", "exec") for one in self.revoked
        )

    def _single(self, kind: str) -> tuple[str, ...]:
        """The arguments for which it has this, unless it was all taken away."""
        if kind in self.revoked:
            return ()
        mine = (one for one in self.granted if one.startswith(f"{kind}:") and one not in self.revoked)
        return tuple(one.partition(":")[2] for one in mine)


def effective(
    asked: tuple[str, ...] | None, granted: Iterable[str], revoked: Iterable[str], *, consented: bool = False
) -> Permissions:
    """What follows from the manifest's list (None when it has none) and the user's word, which is the last."""
    mine = tuple(granted)
    free = tuple(one for one in asked or () if one.partition(":")[0] not in CONSENTED)
    return Permissions(asked is None, tuple(dict.fromkeys((*free, *mine))), tuple(revoked), consented)


def problem(permission: str) -> str:
    """Why it is no permission; empty if it is one."""
    kind, colon, argument = permission.partition(":")
    if permission in _FIXED or (not colon and kind in _WHOLE):
        return ""
    pattern = _ARGUMENTS.get(kind) if colon else None
    if pattern is None:
        return "is not a permission"
    if not argument or not pattern.fullmatch(argument):
        return f"has an argument that does not fit {kind}: it must be {_FITTING[kind]}"
    if ".." in argument.split("/"):
        return 'must not hold ".."'
    return ""


def meaning(permission: str) -> str:
    """In the words of a consent."""
    if permission in _MEANINGS:
        whole = {"fs.read": " anywhere", "fs.write": " anywhere", "env": ", all but keys of hilt's own"}
        return _MEANINGS[permission] + whole.get(permission, "")
    kind, _, argument = permission.partition(":")
    match kind:
        case "fs.read" | "fs.write":
            return f"{_MEANINGS[kind]} in {argument}"
        case "net":
            return f"use the network (it names {argument}, but cannot be held to it)"
        case "env":
            return f"see the environment variable {argument}"
        case "auth":
            return f"have your key for {argument}"
    return permission
