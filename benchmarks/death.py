"""How long anything survives its host or its warden: from SIGKILL to the last process dead."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

LIMIT = 1000.0
ROUNDS = 5

# A main process, a child in a session of its own, and a daemon that shed parent, session and
# environment; all ignore SIGTERM and print their pids.
TREE = """
trap '' TERM
echo $$
setsid sh -c 'echo $$; sleep 1000; :' &
(env -i PATH=/usr/bin:/bin setsid sh -c 'echo $$; sleep 1000; :' &)
while :; do sleep 1000 & wait; done
"""

HOST = """
import asyncio, os, sys
from keryx.aio.scope import Scope
from keryx.warden import Warden

class Sink:
    def feed(self, stream, data):
        os.write(1, data)

async def main():
    warden = Warden(Scope("host"))
    await warden.spawn(
        ["sh", "-c", sys.argv[1]], env={"PATH": "/usr/bin:/bin"}, cwd="/", output=Sink()
    )
    os.write(1, b"%d\\n" % warden.pid)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def measure(victim: str) -> float:
    """Milliseconds until the tree of three and the warden are dead."""
    with subprocess.Popen([sys.executable, "-c", HOST, TREE], stdout=subprocess.PIPE) as host:
        assert host.stdout is not None
        pids = [int(host.stdout.readline()) for _ in range(4)]
        # The warden's pid is a child of the host; the others descend from its keeper.
        children = Path(f"/proc/{host.pid}/task/{host.pid}/children").read_text()
        warden = int(children.split()[0])
        pidfds = [os.pidfd_open(pid) for pid in {*pids, warden}]
        began = time.perf_counter()
        os.kill(host.pid if victim == "host" else warden, signal.SIGKILL)
        for pidfd in pidfds:
            poll = select.poll()
            poll.register(pidfd, select.POLLIN)
            if not poll.poll(10_000):
                return float("inf")
            os.close(pidfd)
        took = (time.perf_counter() - began) * 1e3
        host.kill()
    return took


def main() -> int:
    for victim in ("host", "warden"):
        worst = max(measure(victim) for _ in range(ROUNDS))
        said = "met" if worst <= LIMIT else "MISSED"
        print(
            f"SIGKILL of the {victim:<7} all dead after {worst:6.1f} ms, worst of {ROUNDS}; "
            f"limit {LIMIT:.0f}: {said}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
