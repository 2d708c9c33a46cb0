"""What `keryx --help` costs: CPU seconds of the whole process, the median of many."""

from __future__ import annotations

import os
import resource
import statistics
import sys
from pathlib import Path

LIMIT = 0.15
ROUNDS = 20


def cpu_seconds(argv: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    pid = os.posix_spawn(argv[0], argv, dict(os.environ), file_actions=silent)
    os.waitpid(pid, 0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    bare = statistics.median(cpu_seconds([sys.executable, "-c", ""]) for _ in range(ROUNDS))
    command = str(Path(sys.executable).with_name("keryx"))
    helped = statistics.median(cpu_seconds([command, "--help"]) for _ in range(ROUNDS))
    said = "met" if helped <= LIMIT else "MISSED"
    print(f"keryx --help {helped:.3f} s CPU, bare python {bare:.3f} s; limit {LIMIT}: {said}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
