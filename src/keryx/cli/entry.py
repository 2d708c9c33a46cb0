"""Starts and ends a `keryx` process. It does not know the commands.

Importing this module changes how the process handles Ctrl+C, so only the start of a process may
import it.
"""

# Type checkers take this name for true. Loading `typing` for it takes long, and so does `signal`
# itself: someone could press Ctrl+C meanwhile.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

IS_OURS = signal.getsignal(signal.SIGINT) is signal.default_int_handler
if IS_OURS:
    # While modules are loading there is nothing to clean up. Python's own handler would print a
    # traceback, and can lose the interrupt in a callback of the import system.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import gc  # noqa: E402 (all that is imported comes after the signal)
import importlib  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
from typing import NoReturn  # noqa: E402

# Loading modules creates many objects and no garbage, and a turn creates little.
gc.set_threshold(20_000, 20, 20)

from keryx.cli.main import FAILED, exit_code, parse  # noqa: E402
from keryx.cli.streams import prepare_streams  # noqa: E402


def main() -> NoReturn:
    """Run the command that the arguments name, and end the process with its exit code."""
    problem = prepare_streams()
    if problem is not None:
        print(f"keryx: {problem}", file=sys.stderr)
        _leave(FAILED)
    _leave(exit_code(_work))


def _work() -> int:
    command = parse(sys.argv[1:])
    if isinstance(command, int):
        return command
    if "logging" in sys.modules:  # what is not loaded by now reports nothing
        importlib.import_module("keryx.cli.logs").report_in_lines()
    try:
        if IS_OURS:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return command.run(command.options)
    finally:
        if IS_OURS:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


def _leave(code: int) -> NoReturn:
    """End the process without Python's own shutdown.

    A thread may still block in a read (a prompt that nobody answered), and Python aborts at
    shutdown if such a thread holds a standard stream.
    """
    sys.stderr.flush()
    os._exit(code)
