"""The first moments of a process: from silence, or chatter, to its `hello`, and what it is answered."""

from hilt import __version__
from hilt.errors import ExtensionStartError
from hilt.extensions.agent import Surroundings
from hilt.wire.frames import decode
from hilt.wire.frames_types import HOST_CAPABILITIES, PROTOCOL_VERSION, REFERENCE_VERSION, Hello, HelloAck
from hilt.wire.line import strip_bom

_STRAY_LINES = 64
_STRAY_BYTES = 64 * 1024
_SHOWN = 120


class Handshake:
    """Reads lines until one is a `hello`. Programs that greet the world first are forgiven, up to a point."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._bytes = 0
        self.stray: list[str] = []
        """What came before the hello, line by line."""
        self._first = True

    def take(self, line: bytes) -> Hello | None:
        """The greeting, if this line is one. Raises `ExtensionStartError` when there is no hope of one."""
        frame = decode(strip_bom(line) if self._first else line)
        self._first = False
        if isinstance(frame, Hello):
            if not frame.name:
                raise ExtensionStartError(self._name, 'its hello has no "name"', hint="send the name of the extension")
            return frame
        self.skip(line, len(line))
        return None

    def skip(self, head: bytes, size: int) -> None:
        self._bytes += size
        self.stray.append(head[:_SHOWN].decode(errors="replace"))
        if len(self.stray) > _STRAY_LINES or self._bytes > _STRAY_BYTES:
            raise ExtensionStartError(
                self._name,
                f'it wrote {len(self.stray)} lines that are no hello; the first was "{self.stray[0]}"',
                hint="the first frame on its standard output must be a hello; write everything else to standard error",
            )


def hello_ack(surroundings: Surroundings, directory: str, data: str) -> HelloAck:
    return HelloAck(
        protocol_version=PROTOCOL_VERSION,
        capabilities=HOST_CAPABILITIES,
        zot_version=REFERENCE_VERSION,
        provider=surroundings.provider,
        model=surroundings.model,
        cwd=surroundings.cwd,
        extension_dir=directory,
        data_dir=data,
        host="hilt",
        host_version=__version__,
    )
