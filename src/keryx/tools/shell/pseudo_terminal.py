"""A program that runs another one on a terminal of its own, and passes everything on.

It runs in the session's place, wherever that is, so it is handed over as text: standard library
only, Python 3.8 and later. What comes on its input is typed; what the terminal shows is its output.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import sys
import termios

ROWS, COLUMNS = 40, 120
SIZE = 65536


def main(argv: list[str]) -> int:
    """Run it; the exit code is that of the program, or of a shell for one that a signal ended."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(argv[0], argv)  # noqa: S606 (what the session asked for)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    reading = [terminal, 0]
    while terminal in reading:
        for ready in select.select(reading, [], [])[0]:
            try:
                data = os.read(ready, SIZE)
            except OSError:
                data = b""  # the program has let go of its terminal
            if not data:
                reading.remove(ready)
                continue
            target = 1 if ready == terminal else terminal
            while data:
                data = data[os.write(target, data) :]
    status = os.waitpid(pid, 0)[1]
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
