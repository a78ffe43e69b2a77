"""Who may run what: the mode, what was allowed before, and the question when neither decides."""

import re
from typing import Literal

from msgspec import Struct

from hilt.errors import UsageError
from hilt.model.actions import PermissionMode
from hilt.model.contributions import Effect
from hilt.model.ports import Approver, PermissionRequest

NOT_ASKABLE = (
    "permission denied: this run asks before tools that write or execute, and there is nobody to ask here. "
    "Start with `--permissions accept-edits` or `--permissions yolo` to allow it, or use `hilt rpc` to be asked."
)
_WITH_SUBCOMMANDS = frozenset(
    {
        "apt",
        "brew",
        "bun",
        "bundle",
        "cargo",
        "deno",
        "docker",
        "dotnet",
        "gh",
        "git",
        "go",
        "gradle",
        "helm",
        "hg",
        "kubectl",
        "make",
        "mix",
        "mvn",
        "npm",
        "pip",
        "pnpm",
        "poetry",
        "rails",
        "rake",
        "rustup",
        "svn",
        "systemctl",
        "terraform",
        "uv",
        "yarn",
    }
)
# `npm run` and the like start any program: there the next words decide.
_SUBCOMMAND = re.compile(r"(?!(?:run|exec|x|dlx|shell|ssh)$)[a-z][a-z0-9:_-]*")
# A remembered prefix must not carry a second command along: `git status; rm -rf x`.
_COMPOUND = re.compile(r"[;&|<>`\n(){}]|\$\(")


class Decision(Struct, frozen=True):
    approved: bool
    source: Literal["user", "remembered", "policy"]
    reason: str = ""


class Permissions:
    """The gate in front of every tool. `mode` may be changed while the session runs."""

    def __init__(self, mode: PermissionMode, approver: Approver | None = None) -> None:
        self.mode = mode
        self._stepping: str | None = None
        """Who wants every call to wait, when somebody does: an extension, or nobody else but the user."""
        self._approver = approver
        self._tools: set[str] = set()
        self._prefixes: set[tuple[str, str]] = set()
        self._everything = False

    def allows(self, effect: Effect) -> bool:
        """Whether the mode alone decides, without anybody being asked."""
        if self.step:
            return False
        match self.mode:
            case "yolo":
                return True
            case "accept-edits":
                return effect is not Effect.EXECUTE
            case "ask":
                return effect is Effect.READ

    @property
    def can_ask(self) -> bool:
        return self._approver is not None

    @property
    def attended(self) -> bool:
        """Whether there is somebody who expects to be asked. A client that chose never to be asked may not listen."""
        return self.can_ask and self.mode != "yolo"

    @property
    def step(self) -> bool:
        """Whether every call waits for the user, also one that only reads, whatever was allowed before."""
        return self._stepping is not None

    def toggle_step(self, by: str = "") -> bool:
        """Whether it is so now. It stays off where nobody can be asked: a call would wait for ever."""
        if self._stepping is None:
            self._stepping = by if self.can_ask else None
        elif by and not self._stepping:
            # Or an extension could have run what the user wants to look at first.
            raise UsageError(f"step mode is for the user to end: extension {by} did not begin it", hint="type /step")
        else:
            self._stepping = None
        return self.step

    async def decide(self, request: PermissionRequest) -> Decision:
        if not request.unchecked_by and not self.step:  # that a guard is missing is always news
            if self.allows(request.effect):
                return Decision(approved=True, source="policy")
            if self._remembered(request):
                return Decision(approved=True, source="remembered")
        if self._approver is None:
            return Decision(approved=False, source="policy", reason=NOT_ASKABLE)
        answer = await self._approver.ask(request)
        if not answer.approved:
            return Decision(approved=False, source="user", reason=answer.reason or "the user declined")
        match answer.scope:
            case "tool":
                self._tools.add(request.tool)
            case "prefix":
                self._prefixes.add(_allowance(request))
            case "session":
                self._everything = True
            case "once":
                pass
        return Decision(approved=True, source="user")

    def _remembered(self, request: PermissionRequest) -> bool:
        if self._everything or request.tool in self._tools:
            return True
        return request.preview.kind == "command" and _allowance(request) in self._prefixes


def remembered(command: str) -> str:
    """The part of a command that "always this prefix" allows from then on, whatever follows it.

    Only where the second word names what is done (`git status`, `npm test`); elsewhere the words after
    the first decide what happens, so the command is remembered whole.
    """
    words = command.split()
    has_subcommand = len(words) > 1 and words[0] in _WITH_SUBCOMMANDS and _SUBCOMMAND.fullmatch(words[1])
    return " ".join(words[:2]) if has_subcommand and not _COMPOUND.search(command) else command


def _allowance(request: PermissionRequest) -> tuple[str, str]:
    return request.tool, remembered(request.preview.text)
