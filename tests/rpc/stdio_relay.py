"""Connects its stdin and stdout with a Unix socket, and copies the bytes in both directions."""

from __future__ import annotations

import os
import socket
import sys
import threading


def main(path: str) -> None:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen()
    os.write(2, b"ready\n")
    connection, _ = listening.accept()
    threading.Thread(target=up, args=(connection,), daemon=True).start()
    while data := os.read(0, 1 << 16):
        connection.sendall(data)
    os._exit(0)


def up(connection: socket.socket) -> None:
    while data := connection.recv(1 << 16):
        while data:
            data = data[os.write(1, data) :]
    os._exit(0)


main(sys.argv[1])
