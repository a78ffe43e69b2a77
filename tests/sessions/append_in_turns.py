"""Run by the test of two processes: opens a session again and again, in competition with another."""

import fcntl
import sys
from pathlib import Path

from hilt.errors import SessionError
from hilt.sessions.log import SessionLog
from support.session_files import said


def wait_until_free(path: Path) -> None:
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)


def main(path: Path, name: str, turns: int, appends: int) -> None:
    for turn in range(turns):
        while True:
            try:
                log = SessionLog.open(path, durability="os")
                break
            except SessionError:
                wait_until_free(path)
        with log:
            for number in range(appends):
                log.append(said(f"{name} {turn * appends + number}"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
