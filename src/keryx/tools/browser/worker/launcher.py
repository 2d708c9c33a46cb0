"""The first code of the worker, passed to `python -c`: loads the other modules and runs them.

They come as one frame on standard input, so that nothing must be written to the place.
"""

from __future__ import annotations

import json
import os
import sys
import types

PACKAGE = "keryx_browser"


def read(count: int) -> bytes:
    """Read exactly so many bytes. What follows stays in the pipe."""
    data = b""
    while len(data) < count:
        piece = os.read(0, count - len(data))
        if not piece:
            sys.exit("the host closed the pipe before the worker was loaded")
        data += piece
    return data


def load() -> None:
    """Load the modules in the order in which they come, then run the last one."""
    program = json.loads(read(int.from_bytes(read(4), "big")))
    sys.path += program["path"]
    package = types.ModuleType(PACKAGE)
    package.__path__ = []
    sys.modules[PACKAGE] = package
    module = package
    for name, source in program["modules"].items():
        module = types.ModuleType(f"{PACKAGE}.{name}")
        module.__package__ = PACKAGE
        sys.modules[module.__name__] = module
        exec(compile(source, f"<{module.__name__}>", "exec"), module.__dict__)  # noqa: S102 (our own files)
    module.run(program["settings"])


if __name__ == "__main__":
    load()
