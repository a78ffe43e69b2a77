"""The terminal that the interface draws on and takes keys from, and how it is given back."""

import os
import selectors
import sys
import termios
from codecs import getincrementaldecoder
from typing import Any

from textual.drivers.linux_driver import LinuxDriver

from hilt.frontends.tui.keyboard import Keyboard

_READ = 65_536
_POLL = 0.1
"""Seconds after which a key that may have been the beginning of another is taken to be whole."""
_PIXELS_OFF = "\x1b[?1016l"
_MODES = (2048, 1016, 1006, 1015, 1003, 1000, 2004, 1004)
_GIVEN_BACK = "".join(f"\x1b[?{mode}l" for mode in _MODES) + "\x1b[<u\x1b[?7h\x1b[?1049l\x1b[?25h"


class Terminal(LinuxDriver):
    """Draws on stdout, so that `2>file` keeps what is written there out of the picture."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        assert sys.__stdout__ is not None
        self._file = sys.__stdout__

    def run_input_thread(self) -> None:
        """Hand on what is typed, with a keyboard of our own; what is no UTF-8 is typed as signs that say so."""
        keyboard, decode = Keyboard(), getincrementaldecoder("utf-8")("replace").decode
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                typed = ""
                if selector.select(_POLL):
                    try:
                        data = os.read(self.fileno, _READ)
                    except OSError:
                        data = b""
                    if not data:  # the terminal is gone
                        self._app.call_later(self._app.exit)
                        return
                    typed = decode(data)
                for event in (*(keyboard.feed(typed) if typed else ()), *keyboard.tick()):
                    self.process_message(event)

    def stop_application_mode(self) -> None:
        if self._mouse_pixels and self._writer_thread is not None:
            self.write(_PIXELS_OFF)  # the parent class turns it on and leaves it so
            self._mouse_pixels = False
        super().stop_application_mode()

    def give_back(self) -> None:
        """At once, without the threads that may be stuck: the process is about to end."""
        if self.attrs_before is None or self._file is None:
            return
        try:
            termios.tcsetattr(self.fileno, termios.TCSANOW, self.attrs_before)
            os.write(self._file.fileno(), _GIVEN_BACK.encode())
        except (OSError, termios.error):
            pass  # the terminal is gone
