"""Runs a script: `python -m keryx_tools SCRIPT [ARGUMENTS]`.

The connection to the host is open before the script starts. If it is this process's stdin and
stdout, the script cannot disturb it: its own stdin is empty, and its stdout is its stderr.
"""

from __future__ import annotations

import runpy
import sys
from functools import partial
from types import TracebackType


def main() -> None:
    del sys.argv[0]
    if not sys.argv:
        sys.exit("usage: python -m keryx_tools SCRIPT [ARGUMENTS]")
    sys.excepthook = partial(_print_error, sys.argv[0])
    runpy.run_path(sys.argv[0], run_name="__main__")


def _print_error(
    script: str, kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print the traceback without the frames that are not the script's."""
    while trace is not None and trace.tb_frame.f_code.co_filename != script:
        trace = trace.tb_next
    sys.__excepthook__(kind, error.with_traceback(trace), trace)


if __name__ == "__main__":
    main()
