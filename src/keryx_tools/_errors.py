"""What a call of a tool may raise, named by what became of the call.

    ToolError
      ToolFailedError       the tool says why it could not do its work
      ToolDeniedError       nobody allowed it; it did not run
      ToolCancelledError    it was stopped
      ToolUnknownError      nobody knows how far it came
      ToolTimeoutError      the caller's deadline is over; the call was given up and is cancelled
      ToolConnectionError   the host cannot be reached, or is gone

The first four come from the host, with the tool's own message; the last two arise here. All can be
pickled, so a pool of processes hands them on as they are.
"""

from __future__ import annotations

from typing import Any


class ToolError(Exception):
    """A call that gave no result. `tool` names whom was called."""

    tool: str

    def __init__(self, message: str, tool: str = "") -> None:
        super().__init__(message)
        self.tool = tool


class ToolFailedError(ToolError):
    """The tool ran, and says why it could not do its work."""


class ToolDeniedError(ToolError):
    """The call was not allowed. It did not run."""


class ToolCancelledError(ToolError):
    """The call was stopped before it had ended."""


class ToolUnknownError(ToolError):
    """Nobody knows how far the call came."""


class ToolTimeoutError(ToolError, TimeoutError):
    """The deadline is over. The call was given up, and the host was told."""


class ToolConnectionError(ToolError, ConnectionError):
    """The host cannot be reached. `may_have_run` is False if the call certainly did not run."""

    may_have_run: bool

    def __init__(self, message: str, tool: str = "", may_have_run: bool = False) -> None:
        super().__init__(message, tool)
        self.may_have_run = may_have_run


KINDS: dict[str, type[ToolError]] = {
    kind.__name__: kind
    for kind in (ToolFailedError, ToolDeniedError, ToolCancelledError, ToolUnknownError)
}


def error_of(answer: dict[str, Any], tool: str) -> ToolError:
    """The host's error, as the exception to raise."""
    kind = KINDS.get(str(answer.get("data") or ""), ToolFailedError)
    return kind(str(answer.get("message") or "the host gave no reason"), tool)


def gone(tool: str, why: object) -> ToolConnectionError:
    """The host went away after the call had been sent."""
    return ToolConnectionError(
        f"{tool}: the connection to the host was lost before the answer came ({why}). "
        "Nobody knows whether the call ran; it is not sent again.",
        tool,
        True,
    )


def unsent(tool: str, why: object) -> ToolConnectionError:
    """The call never got to the host."""
    return ToolConnectionError(
        f"{tool}: the host cannot be reached ({why}). The call did not run.", tool
    )


def explained(error: OSError, tool: str, sent: bool) -> OSError:
    """What the system says of a connection, as the exception to raise."""
    if error.errno is None:
        return error  # not the system's: a signal handler of the script raised it
    return (gone if sent else unsent)(tool, error.strerror or error)


def late(tool: str, seconds: float) -> ToolTimeoutError:
    return ToolTimeoutError(f"{tool}: no answer within {seconds:g} s; the call was given up.", tool)
