"""An extension played from elsewhere: standard input and output go to the socket that the first argument names.

    python3 -I -S puppet.py SOCKET

The end of its input is the end of what the player hears; when the player hangs up, it leaves with 0.
"""

import os
import socket
import sys
import threading

link = socket.socket(socket.AF_UNIX)
link.connect(sys.argv[1])


def listen() -> None:
    while heard := os.read(0, 65536):
        link.sendall(heard)
    link.shutdown(socket.SHUT_WR)


threading.Thread(target=listen, daemon=True).start()
while said := link.recv(65536):
    while said:
        said = said[os.write(1, said) :]
