"""The errors of a tool call, named by what became of the call.

    ToolError
      ToolFailedError       the tool failed, and says why
      ToolDeniedError       it was not allowed; it did not run
      ToolCancelledError    it was stopped
      ToolUnknownError      it is unknown how far it came
      ToolTimeoutError      the caller's deadline is over; the call is cancelled
      ToolConnectionError   the host cannot be reached, or the connection was lost

The first four come from the host, with the tool's own message; the last two are raised here. All
can be pickled, so that a pool of processes can pass them on.
"""

from __future__ import annotations

from typing import Any


class ToolError(Exception):
    """A call that returned no result. `tool` is the name of the tool."""

    tool: str

    def __init__(self, message: str, tool: str = "") -> None:
        super().__init__(message)
        self.tool = tool


class ToolFailedError(ToolError):
    """The tool failed, and says why."""


class ToolDeniedError(ToolError):
    """The call was not allowed. It did not run."""


class ToolCancelledError(ToolError):
    """The call was stopped before it had ended."""


class ToolUnknownError(ToolError):
    """It is unknown how far the call came."""


class ToolTimeoutError(ToolError, TimeoutError):
    """The deadline is over. The call was given up, and the host cancels it."""


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
    """Return the host's error as the exception to raise."""
    kind = KINDS.get(str(answer.get("data") or ""), ToolFailedError)
    return kind(str(answer.get("message") or "the host gave no reason"), tool)


def lost_error(tool: str, why: object) -> ToolConnectionError:
    """Return the error for a connection that was lost after the call was sent."""
    return ToolConnectionError(
        f"{tool}: the connection to the host was lost before the answer came ({why}). "
        "It is unknown whether the call ran; it is not sent again.",
        tool,
        True,
    )


def unsent_error(tool: str, why: object) -> ToolConnectionError:
    """Return the error for a call that never reached the host."""
    return ToolConnectionError(
        f"{tool}: the host cannot be reached ({why}). The call did not run.", tool
    )


def os_error(error: OSError, tool: str, sent: bool) -> OSError:
    """Return the exception to raise for a system error of a connection."""
    if error.errno is None:
        return error  # a signal handler of the script raised it, not the system
    return (lost_error if sent else unsent_error)(tool, error.strerror or error)


def timeout_error(tool: str, seconds: float) -> ToolTimeoutError:
    return ToolTimeoutError(f"{tool}: no answer within {seconds:g} s; the call was given up.", tool)
