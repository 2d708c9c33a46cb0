"""Prints log records of a command on standard error, one line each.

Python's development mode (PYTHONDEVMODE=1) shows their tracebacks.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Mapping
from typing import Final

from keryx.engine.redaction import Redactor

SERVER: Final = "keryx.server"
"""The name that the server logs under."""
READERS: Final = ("ddgs", "htmldate", "justext", "pypdf", "trafilatura")
"""Libraries that report every fault of a web page; the result of a call says what matters."""


def report_in_lines() -> None:
    """Set up logging for this process."""
    handler = logging.StreamHandler()
    if not sys.flags.dev_mode:
        handler.setFormatter(_Lines())
        sys.unraisablehook = _log_unraisable
        threading.excepthook = _log_thread_error
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    for name in READERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)


def redact_logs(secrets: Mapping[str, str]) -> None:
    """Remove the values of these secrets from all that this process logs from now on."""
    redactor = Redactor(secrets)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(_Redacted(handler.formatter or logging.Formatter(), redactor))


class _Redacted(logging.Formatter):
    """Formats a record as another formatter does, without secrets."""

    def __init__(self, formatter: logging.Formatter, redactor: Redactor) -> None:
        super().__init__()
        self._formatter = formatter
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        return self._redactor.text(self._formatter.format(record))


class _Lines(logging.Formatter):
    """Formats a record as one line, with its error but without a traceback.

    Records of the server keep their tracebacks: nobody watches a server when they happen.
    """

    def format(self, record: logging.LogRecord) -> str:
        if record.name == SERVER:
            return f"keryx: {super().format(record)}"
        text = record.getMessage().partition("\n")[0]
        error = record.exc_info[1] if record.exc_info else None
        return f"keryx: {text}" + ("" if error is None else f": {_describe(error)}")


def _log_unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    if unraisable.exc_value is not None:
        logging.getLogger(__name__).warning("ignored: %s", _describe(unraisable.exc_value))


def _log_thread_error(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
        logging.getLogger(__name__).error("a thread ended with %s", _describe(args.exc_value))


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
