"""Runs a program in a terminal of its own and passes its output on slowly, as a bad line does."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import termios
import time
import tty
from contextlib import suppress

PIECE = 64
"""Bytes that are passed on at once; the rest waits, and the program blocks when it writes."""
DELAY = 0.004


def main() -> int:
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, termios.tcgetwinsize(0))
    before = termios.tcgetattr(0)
    tty.setraw(0)
    with subprocess.Popen(
        sys.argv[1:], stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    ) as child:
        os.close(slave)
        with suppress(OSError):  # the program has ended
            copy(master)
        code = child.wait()
    termios.tcsetattr(0, termios.TCSADRAIN, before)
    return code


def copy(master: int) -> None:
    while True:
        ready, _, _ = select.select([0, master], [], [])
        if 0 in ready:
            os.write(master, os.read(0, 1024))
        if master in ready:
            os.write(1, os.read(master, PIECE))
            time.sleep(DELAY)


if __name__ == "__main__":
    sys.exit(main())
