"""Run by the crash tests: forks a writer for each session it is told of, and says when it has died.

Reads `<path> <seed>` lines; prints `writer <pid>`, then the writer's own `saved <number>` lines, then
`dead`. Forking keeps a round short: the interpreter starts once.
"""

import os
import random
import sys
from pathlib import Path

from hilt.sessions.log import SessionLog
from support.session_files import meta, said

SMALLEST, LARGEST = 20, 4 << 20


def say(text: str) -> None:
    os.write(1, text.encode() + b"\n")


def write_forever(path: Path, seed: int) -> None:
    randomness = random.Random(seed)
    log = SessionLog.create(path, meta())
    number = len(log.messages())
    while True:
        size = int(SMALLEST * (LARGEST / SMALLEST) ** randomness.random())
        log.append(said(f"{number} " + "x" * size))
        say(f"saved {number}")
        number += 1


def main() -> None:
    for line in sys.stdin:
        path, seed = line.split()
        pid = os.fork()
        if pid == 0:
            write_forever(Path(path), int(seed))
        say(f"writer {pid}")
        os.waitpid(pid, 0)
        say("dead")


if __name__ == "__main__":
    main()
