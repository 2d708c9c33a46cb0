"""Runs a script: `python -m keryx_tools SCRIPT [ARGUMENTS]`.

By then the way to the host is made. Where it is this process's stdin and stdout, nothing that the
script prints or starts can get between: its own stdin is empty, and its stdout is its stderr.
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
    sys.excepthook = partial(_tell, sys.argv[0])
    runpy.run_path(sys.argv[0], run_name="__main__")


def _tell(
    script: str, kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """As if the script had been started by itself: how it was is nothing to its reader."""
    while trace is not None and trace.tb_frame.f_code.co_filename != script:
        trace = trace.tb_next
    sys.__excepthook__(kind, error.with_traceback(trace), trace)


if __name__ == "__main__":
    main()
