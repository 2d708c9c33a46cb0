"""Runs a script: `python -m keryx_tools SCRIPT [ARGUMENTS]`.

By then the way to the host is made. Where it is this process's stdin and stdout, nothing that the
script prints or starts can get between: its own stdin is empty, and its stdout is its stderr.
"""

from __future__ import annotations

import runpy
import sys


def main() -> None:
    del sys.argv[0]
    if not sys.argv:
        sys.exit("usage: python -m keryx_tools SCRIPT [ARGUMENTS]")
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
