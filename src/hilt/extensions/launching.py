"""What a program of an extension is given when it is started: environment, limits, sandbox, pipes, a log.

The same whoever starts it, the agent or somebody who plays it. When it is started, and what is said to it then, is
the business of others.
"""

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec import Struct

from hilt.extensions.agent import Places
from hilt.extensions.allowance import Allowance, allowance, processes_now
from hilt.extensions.confinement import policy
from hilt.packages.arrangement import Pipes
from hilt.packages.discovery import Found, log_name
from hilt.packages.environment import Given, environment
from hilt.transport.launch import Spec

if TYPE_CHECKING:
    from hilt.transport.tapping import Tap  # few are traced


class Launch(Struct, frozen=True):
    found: Found
    places: Places
    cwd: Path
    """Where the agent works."""
    given: Given
    """Of the environment, as it is."""
    allowance: Allowance

    @classmethod
    def of(cls, found: Found, places: Places, cwd: Path, keys: Collection[str]) -> "Launch":
        """`keys`: names of variables that are hilt's own."""
        chosen = found.choices
        allowed = allowance(found.manifest.limits, chosen.limits, chosen.nice, processes_now())
        return cls(found, places, cwd, environment(os.environ, found.permissions, keys), allowed)

    def spec(
        self,
        pipes: Pipes,
        session: str,
        *,
        more: Mapping[str, str] = MappingProxyType({}),
        tap: "Tap | None" = None,
    ) -> Spec:
        """`session` is its id; `more` is added to the environment. Raises `StartError` for what cannot be confined."""
        found = self.found
        own = {**self._bytecode(), **self._session(session), **more, "AI_AGENT": "hilt", "HILT": "1"}
        return Spec(
            argv=found.argv,
            cwd=found.directory,
            env={**self.given.env, **own},
            stderr_path=self.places.logs / log_name(found.name),
            limits=self.allowance.for_start(),
            grace=found.manifest.stop_grace_ms / 1000,
            policy=policy(found, self.places, self.cwd),
            pipes=pipes,
            speaks=_speaks if pipes == "either" else None,
            tap=tap,
        )

    def _session(self, id_: str) -> dict[str, str]:
        """Some that speak the jsonrpc dialect look for it there, though nobody gave it to them so far."""
        return {"PIGLET_SESSION_ID": id_} if self.found.manifest.dialect == "jsonrpc" else {}

    def _bytecode(self) -> dict[str, str]:
        """Where Python keeps what it compiled: not beside the sources, where it would run whatever it finds compiled
        without a look at them. Only the sources of what was installed or trusted were looked at."""
        if self.found.source == "flag":
            return {}
        return {"PYTHONPYCACHEPREFIX": str(self.places.root / "extensions" / ".bytecode" / self.found.name)}


def _speaks(line: bytes) -> bool | None:
    from hilt.wire.jsonrpc import speaks  # only where there is one that speaks it

    return speaks(line)
