"""The host's side of a script: it turns the script's requests into tool calls.

It knows nothing of processes, nor of what carries the calls. A connection must first send the run's
secret. Closing a connection cancels its calls, because they run in its handlers. Where there are no
connections, each call carries the secret itself.
"""

from __future__ import annotations

import hmac
import secrets
from typing import Any, Final, TypeVar

import msgspec

from keryx.decoding import decode_json
from keryx.messages import CallOutcome, Json
from keryx.ports.tool_context import ToolContext
from keryx.rpc import Call, CallError
from keryx.rpc.peer import METHOD_NOT_FOUND, Handler
from keryx.sandbox.scripts.value_limits import MOST_VALUES, UNCOUNTED, ValueBudget, values_in

T = TypeVar("T")

VERSION: Final = 1
FINISH: Final = "keryx.finish"
"""The tool name that a script calls to pass its result."""
LONGEST: Final = 24 * 3600.0
"""Seconds; longer timeouts are cut to this."""
LONGEST_TEXT: Final = 16 * 1024 * 1024
"""Bytes. Tools accept no longer JSON text, because no model writes it; longer arguments of a script
are decoded here, after their values were counted."""
_KINDS: Final = {
    "failed": "ToolFailedError",
    "denied": "ToolDeniedError",
    "cancelled": "ToolCancelledError",
    "unknown": "ToolUnknownError",
}


class _Hello(msgspec.Struct, frozen=True):
    secret: str
    version: int = VERSION


class _ToolCall(msgspec.Struct, frozen=True):
    tool: str
    arguments: msgspec.Raw = msgspec.Raw(b"{}")
    """Not decoded: the tool checks them, and invalid ones are never decoded."""
    timeout: float | None = None
    secret: str = ""
    """Only sent where there are no connections."""


class _Finish(msgspec.Struct, frozen=True):
    value: msgspec.Raw = msgspec.Raw(b"null")


_Overlaps = tuple[str, ...] | msgspec.UnsetType
"""Calls that may still run and touch the same things; unset if there are none."""


class _Text(msgspec.Struct, frozen=True):
    text: str
    value: None = None
    outcome: str = "completed"
    overlaps: _Overlaps = msgspec.UNSET


class _Value(msgspec.Struct, frozen=True):
    """A value. The script builds the text from it, so that only the value is sent."""

    value: msgspec.Raw
    outcome: str = "completed"
    overlaps: _Overlaps = msgspec.UNSET


class Tally(msgspec.Struct):
    """The sums over a run's calls of one tool."""

    count: int = 0
    failures: int = 0
    seconds: float = 0.0


_NULL: Final = b"null"
_encode: Final = msgspec.json.Encoder().encode


class ScriptCalls:
    """Answers all calls of one run."""

    def __init__(self, context: ToolContext, granted: frozenset[str], *, most_calls: int) -> None:
        self._context = context
        self._granted = granted
        self._most_calls = most_calls
        self._count = 0
        self._value_budget = ValueBudget()
        self.secret: Final = secrets.token_hex(32)
        self.tallies: dict[str, Tally] = {}
        self.result: msgspec.Raw | None = None
        """The value that the script passed to `finish`, if any."""

    def connection(self) -> Handler:
        """Return a handler for the calls of a new connection."""
        return _Connection(self).handle

    async def file_call(self, call: Call) -> bytes | None:
        """Answer a call that came in a file, without a connection."""
        request = _decoded(call, _ToolCall)
        self.check(request.secret)
        _check_method(call)
        return await self.call(request)

    def check(self, secret: str) -> None:
        if not hmac.compare_digest(secret.encode(), self.secret.encode()):
            raise CallError("the secret is not that of this run", name="ToolDeniedError")

    async def call(self, request: _ToolCall) -> bytes:
        """Run a tool for the script, as one of its calls."""
        if request.tool == FINISH:
            self.result = _finish_value(request)
            return _encode(_Text(""))
        self._count += 1
        if self._count > self._most_calls:
            raise CallError(
                f"this script has made all of the {self._most_calls:,} calls that one run may make",
                name="ToolDeniedError",
            )
        if request.tool not in self._granted:
            granted = ", ".join(sorted(self._granted)) or "none"
            raise CallError(
                f"the tool {request.tool!r} is not granted to this script (granted: {granted})",
                name="ToolDeniedError",
            )
        tally = self.tallies.setdefault(request.tool, Tally())
        tally.count += 1
        text = memoryview(request.arguments)
        if len(text) <= UNCOUNTED:
            return await self._call(request, bytes(text), tally)
        count = values_in(text)
        if count > MOST_VALUES:
            tally.failures += 1
            raise CallError(
                f"the arguments of {request.tool} hold more than {MOST_VALUES:,} values; "
                "pass less at once, or write a file and pass its path",
                name="ToolFailedError",
            )
        async with self._value_budget.reserve(count):
            arguments = bytes(text) if len(text) <= LONGEST_TEXT else _decoded_arguments(request)
            return await self._call(request, arguments, tally)

    async def _call(
        self, request: _ToolCall, arguments: bytes | dict[str, Any], tally: Tally
    ) -> bytes:
        seconds = None if request.timeout is None else min(request.timeout, LONGEST)
        outcome = await self._context.call(request.tool, arguments, timeout=seconds)
        tally.seconds += outcome.duration
        if outcome.outcome != "completed":
            tally.failures += 1
            raise CallError(_error_text(outcome), name=_KINDS[outcome.outcome])
        value = _value(outcome)
        overlaps = outcome.overlaps or msgspec.UNSET
        if value is None:
            return _encode(_Text(outcome.text, overlaps=overlaps))
        return _encode(_Value(value, overlaps=overlaps))


class _Connection:
    """One connection."""

    def __init__(self, script_calls: ScriptCalls) -> None:
        self._script_calls = script_calls
        self._authenticated = False

    async def handle(self, call: Call) -> bytes | None:
        if call.method == "hello":
            self._script_calls.check(_decoded(call, _Hello).secret)
            self._authenticated = True
            call.authenticate()
            return _encode({"version": VERSION})
        if not self._authenticated:
            raise CallError("call hello with the run's secret first", name="ToolDeniedError")
        _check_method(call)
        return await self._script_calls.call(_decoded(call, _ToolCall))


def _decoded(call: Call, kind: type[T]) -> T:
    try:
        return decode_json(call.params, kind)
    except msgspec.DecodeError as error:
        raise CallError(f"{call.method}: {error}", name="ToolFailedError") from error


def _check_method(call: Call) -> None:
    if call.method != "call":
        raise CallError(f"there is no method {call.method!r}", code=METHOD_NOT_FOUND)


def _finish_value(request: _ToolCall) -> msgspec.Raw:
    """Return the script's result without decoding it; raise if it is not valid text."""
    try:
        value = decode_json(request.arguments, _Finish).value
        return msgspec.Raw(str(memoryview(value), "utf-8").encode())
    except (msgspec.DecodeError, UnicodeError) as error:
        raise CallError(f"the result cannot be read: {error}", name="ToolFailedError") from error


def _decoded_arguments(request: _ToolCall) -> dict[str, Any]:
    try:
        return decode_json(request.arguments, dict[str, Any])
    except (msgspec.DecodeError, UnicodeError) as error:
        text = f"the arguments of {request.tool} cannot be read: {error}"
        raise CallError(text, name="ToolFailedError") from error


def _error_text(outcome: CallOutcome) -> str:
    """Return the text of the exception that the script gets."""
    if outcome.outcome == "denied":
        return f"{outcome.tool} was refused: {outcome.reason}"
    reason = f" ({outcome.reason})" if outcome.reason else ""
    return outcome.text or f"{outcome.outcome}{reason}"


def _value(outcome: CallOutcome) -> msgspec.Raw | None:
    """Return the tool's value if its content is one JSON value other than null."""
    if len(outcome.content) == 1 and isinstance(outcome.content[0], Json):
        value = outcome.content[0].value
        return None if memoryview(value) == memoryview(_NULL) else value
    return None
