"""An extension played from elsewhere: its pipes lead to a socket. A program by itself, without anything of hilt.

    python3 -I -S puppet.py SOCKET

Without an argument the socket has the name that this file was started by, without `.py`. With `PIGLET_FD` the pipes are
descriptors 3 and 4, otherwise standard input and output. The end of its input is the end of what the player hears; when
the player hangs up, it leaves with 0.
"""

import os
import socket
import sys
import threading


def main() -> None:
    link = socket.socket(socket.AF_UNIX)
    link.connect(sys.argv[1] if sys.argv[1:] else sys.argv[0].removesuffix(".py"))
    heard_on, said_on = (3, 4) if os.environ.get("PIGLET_FD") == "1" else (0, 1)
    threading.Thread(target=_pass_on, args=(heard_on, link), daemon=True).start()
    while said := link.recv(65536):
        while said:
            said = said[os.write(said_on, said) :]


def _pass_on(heard_on: int, link: socket.socket) -> None:
    while heard := os.read(heard_on, 65536):
        link.sendall(heard)
    link.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    main()
