"""hilt's own log: errors only, private, small, with keys blanked."""

import logging
import os
from pathlib import Path

from hilt.model.masking import Mask

_LIMIT = 5 * 1024 * 1024


class LogFile(logging.Handler):
    """Opens the file for each record: there are few, and most runs have none."""

    def __init__(self, path: Path, mask: Mask) -> None:
        super().__init__(logging.WARNING)
        self._path = path
        self._mask = mask
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        text = self._mask.text(self.format(record)) + "\n"
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._path.exists() and self._path.stat().st_size > _LIMIT:
                self._path.replace(self._path.with_suffix(".log.1"))
            fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except OSError:
            pass  # a full disk must not turn one failure into two


def log_to(path: Path, mask: Mask) -> None:
    root = logging.getLogger()
    root.handlers[:] = [LogFile(path, mask)]
    root.setLevel(logging.WARNING)
