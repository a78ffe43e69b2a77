"""The terminal that the interface draws on and takes keys from, and how it is given back."""

import os
import selectors
import signal
import sys
import termios
from codecs import getincrementaldecoder
from typing import Any

from textual.drivers import linux_driver

from hilt.frontends.tui.keyboard import Keyboard
from hilt.frontends.tui.writer import Writer

_READ = 65_536
_POLL = 0.1
"""Seconds after which a key that may have been the beginning of another is taken to be whole."""
_PIXELS_OFF = "\x1b[?1016l"
_MODES = (2026, 2048, 1016, 1006, 1015, 1003, 1000, 2004, 1004)
_CUT = "\x1b\\"
"""Ends what may have been cut off in the middle."""
_GIVEN_BACK = _CUT + "".join(f"\x1b[?{mode}l" for mode in _MODES) + "\x1b[<u\x1b[?7h\x1b[?1049l\x1b[?25h"
_PATIENCE = 1.0
"""Seconds for the last of what is drawn to arrive, at the end."""

linux_driver.WriterThread = Writer  # type: ignore[attr-defined]  # the parent class makes its own, and waits for it


class Terminal(linux_driver.LinuxDriver):
    """Draws on stdout, so that `2>file` keeps what is written there out of the picture."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        assert sys.__stdout__ is not None
        self._file = sys.__stdout__
        self._went_on = False
        """Since it was last suspended."""
        self._left = False
        """What gives the terminal back is on its way."""

    def _get_terminal_size(self) -> tuple[int, int]:
        """As it is now. The parent class believes COLUMNS and LINES first, which do not change with the window."""
        try:
            columns, rows = os.get_terminal_size(self.fileno)
        except OSError:
            columns, rows = 0, 0
        return (columns, rows) if columns and rows else super()._get_terminal_size()

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

    def start_application_mode(self) -> None:
        self._left = False
        super().start_application_mode()  # type: ignore[no-untyped-call]  # it has no annotation
        if isinstance(self._writer_thread, Writer):
            self._writer_thread.caught_up = lambda: self._app.call_later(self._app.refresh, layout=True)

    def stop_application_mode(self) -> None:
        if self._mouse_pixels and self._writer_thread is not None:
            self.write(_PIXELS_OFF)  # the parent class turns it on and leaves it so
            self._mouse_pixels = False
        super().stop_application_mode()
        self._left = True

    def close(self) -> None:
        if isinstance(self._writer_thread, Writer) and not self._writer_thread.finished(_PATIENCE):
            self.give_back()

    def _sigtstp_application(self, *_: object) -> None:
        """Suspend all that the shell has started with us, in the way that does nothing where no shell waits.

        The parent class stops itself alone and unconditionally: under `uv run` the shell would never know, and in a
        window of its own nobody could have it go on.
        """
        if self._auto_restart:
            self.suspend_application_mode()
            self._must_signal_resume = True
        self._went_on = False
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(0, signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._sigtstp_application)
        if self._auto_restart and not self._went_on:
            self.resume_application_mode()

    def _sigcont_application(self, *_: object) -> None:
        self._went_on = True
        super()._sigcont_application()

    def give_back(self) -> None:
        """At once, whatever is on its way: what nobody has read yet is thrown away."""
        if self.attrs_before is None or self._file is None:
            return
        if self._left and isinstance(self._writer_thread, Writer) and self._writer_thread.finished(_PATIENCE):
            return  # it has been: done twice, it would take away what was there before us
        try:
            termios.tcsetattr(self.fileno, termios.TCSANOW, self.attrs_before)
            termios.tcflush(self._file.fileno(), termios.TCOFLUSH)
            os.write(self._file.fileno(), _GIVEN_BACK.encode())
        except (OSError, termios.error):
            pass  # the terminal is gone
