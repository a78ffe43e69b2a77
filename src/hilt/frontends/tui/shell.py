"""Shell commands of the user, on the screen: from what was typed to the block that shows it all.

Owns the blocks of those that run. Running them is the agent's business. Keys of the user's are blanked in what is
shown, as everywhere.
"""

from collections.abc import Callable

from hilt.agent.session import Session
from hilt.agent.shelling import REPORT, recalled, run
from hilt.errors import HiltError
from hilt.frontends.masked import concealed
from hilt.frontends.tui.scene import Part, Scene
from hilt.frontends.tui.transcript.shell import Shelled
from hilt.model.masking import Mask


def ran_before(said: str) -> Shelled | None:
    """A command of before, from what the model was told of it. None for everything else that was said."""
    if (told := recalled(said)) is None:
        return None
    command, output = told
    block = Shelled(command)
    block.finished(output)
    return block


class Shells:
    def __init__(self, session: Session, scene: Scene, clock: Callable[[], float]) -> None:
        self._session = session
        self._scene = scene
        self._clock = clock
        self._running: list[Shelled] = []
        self._unreported = 0
        """Those that the model has not been told of yet."""

    async def run(self, mask: Mask, command: str, share: bool) -> None:
        """See a command through, with its output as it comes. `share`: the model comes to know of it."""
        block = Shelled(mask.text(command), self._clock(), private=not share)
        self._scene.blocks.append(block)
        self._running.append(block)
        self._unreported += share
        held = ""

        async def progress(text: str) -> None:
            nonlocal held
            shown, held = mask.cut(held + text)  # a key may come in two pieces
            block.progress(shown)
            self._scene.mark(Part.TRANSCRIPT)

        try:
            output = await run(self._session, command, progress, share=share)
            block.finished(concealed(output, mask), self._clock())
        except HiltError as error:
            self._unreported -= share
            block.failed(f"{error.message}\n{error.hint}" if error.hint else error.message)
        finally:
            self._running.remove(block)
            self._scene.mark(Part.TRANSCRIPT)

    def tick(self) -> None:
        """Time has passed."""
        for block in self._running:
            block.tick(self._clock())
            self._scene.mark(Part.TRANSCRIPT)

    def reported(self, said: str) -> bool:
        """Whether this is what the model is told of a command, which is on screen already."""
        ours = self._unreported > 0 and said.startswith(REPORT)
        self._unreported -= ours
        return ours
