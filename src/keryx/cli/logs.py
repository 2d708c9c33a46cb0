"""What libraries and loops report while a command runs: a line each, on standard error.

Where it happened interests those who work on Keryx: Python's development mode shows it.
"""

from __future__ import annotations

import logging
import sys
import threading
from typing import Final

SERVER: Final = "keryx.server"
"""The name that the server logs under."""


def report_in_lines() -> None:
    """Set up the reports of this process."""
    handler = logging.StreamHandler()
    if not sys.flags.dev_mode:
        handler.setFormatter(_Lines())
        sys.unraisablehook = _tell_unraisable
        threading.excepthook = _tell_of_thread
    logging.basicConfig(handlers=[handler], level=logging.WARNING)


class _Lines(logging.Formatter):
    """A record as one line, with its error but without a traceback.

    A server's own faults keep theirs: nobody watches it when they happen.
    """

    def format(self, record: logging.LogRecord) -> str:
        if record.name == SERVER:
            return f"keryx: {super().format(record)}"
        text = record.getMessage().partition("\n")[0]
        error = record.exc_info[1] if record.exc_info else None
        return f"keryx: {text}" + ("" if error is None else f": {_named(error)}")


def _tell_unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    if unraisable.exc_value is not None:
        logging.getLogger(__name__).warning("ignored: %s", _named(unraisable.exc_value))


def _tell_of_thread(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_value is not None and not isinstance(ended.exc_value, SystemExit):
        logging.getLogger(__name__).error("a thread ended with %s", _named(ended.exc_value))


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
