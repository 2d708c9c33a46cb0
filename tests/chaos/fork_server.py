"""A process that has imported everything, with no loop and no thread, and forks host processes.

Run as `python -m tests.chaos.fork_server DESCRIPTOR`. A life then costs a fork instead of an
interpreter's start. It takes one order at a time and answers each with one number; a process is
reaped only when the test asks how it ended, so its pid cannot become another's before that. When
the test is gone, so are all lives.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import traceback

import msgspec

from keryx.aio.loops import run_loop
from tests.chaos import program, racing_programs, resume_guard
from tests.chaos.child import Child
from tests.chaos.host_processes import LONGEST_ORDER, Order, Orders, Start

SCENARIOS = {**program.SCENARIOS, **resume_guard.SCENARIOS, **racing_programs.SCENARIOS}

_decode = msgspec.json.Decoder(Order).decode


def main(orders: socket.socket) -> None:
    # What is there now is never garbage: no life has to copy it to look.
    gc.freeze()
    lives: set[int] = set()
    while True:
        data, descriptors, _, _ = socket.recv_fds(orders, LONGEST_ORDER, 2)
        if not data:
            break
        order = _decode(data)
        if isinstance(order, Start):
            pid = os.fork()
            if pid == 0:
                orders.close()
                live(order.orders, descriptors)
            lives.add(pid)
            for descriptor in descriptors:
                os.close(descriptor)
            answer = pid
        elif order.stopped:
            os.waitpid(order.pid, os.WUNTRACED)
            answer = 0
        else:
            lives.discard(order.pid)
            answer = os.waitstatus_to_exitcode(os.waitpid(order.pid, 0)[1])
        orders.send(str(answer).encode())
    for pid in lives:
        os.kill(pid, signal.SIGKILL)


def live(orders: Orders, descriptors: list[int]) -> None:
    """Run the scenario in this process, and end it."""
    code = 1
    try:
        child = Child(orders, *descriptors)
        run_loop(SCENARIOS[orders.scenario](child))
        code = 0
    except BaseException:  # noqa: BLE001 (nothing may get back into the zygote's own loop)
        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as line:
        main(line)
