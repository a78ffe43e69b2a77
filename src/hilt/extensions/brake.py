"""Not reading an extension for a while: whoever has too much of it to deal with holds it, and it waits.

What it asks or answers is read late meanwhile, and that is its own cost. Several may hold it at once.
"""

from hilt.transport.channels import Channel


class Brake:
    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._holders: set[object] = set()

    def hold(self, holder: object) -> None:
        if not self._holders:
            self._channel.pause()
        self._holders.add(holder)

    def release(self, holder: object) -> None:
        if holder in self._holders:
            self._holders.remove(holder)
            if not self._holders:
                self._channel.resume()
