"""A program that runs another program on a pseudo terminal, and passes input and output on.

It runs in the session's place, so its source is passed as text: standard library only, Python 3.8
and later. Its input is typed into the terminal; its output is what the terminal shows.
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
    """Run the program; return its exit code, or 128 plus the signal that ended it."""
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
                data = b""  # the program has closed its terminal
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
