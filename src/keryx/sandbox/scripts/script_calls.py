"""The host's side of a script: what it says, and which calls that becomes.

Knows nothing of processes, nor of what carries the calls. A connection that does not know the run's
secret is told nothing; one that closes takes its calls with it, for they run in its handlers. Where
there are no connections, each call says the secret itself.
"""

from __future__ import annotations

import hmac
import secrets
from typing import Any, Final, TypeVar

import msgspec

from keryx.messages import CallOutcome, Json
from keryx.ports.tool import ToolContext
from keryx.rpc import Call, CallError
from keryx.rpc.peer import METHOD_NOT_FOUND, Handler
from keryx.sandbox.scripts.structure import MOST_VALUES, UNCOUNTED, Allowance, values_in

T = TypeVar("T")

VERSION: Final = 1
FINISH: Final = "keryx.finish"
"""What a script calls to give its result."""
LONGEST: Final = 24 * 3600.0
"""Seconds; a caller that waits longer than that for one call does not count them."""
LONGEST_TEXT: Final = 16 * 1024 * 1024
"""Bytes. Tools take no longer text, for no model writes that; what a script passes is decoded here,
and the values in it have been counted."""
_KINDS: Final = {
    "failed": "ToolFailedError",
    "denied": "ToolDeniedError",
    "cancelled": "ToolCancelledError",
    "unknown": "ToolUnknownError",
}


class _Hello(msgspec.Struct, frozen=True):
    secret: str
    version: int = VERSION


class _Asked(msgspec.Struct, frozen=True):
    tool: str
    arguments: msgspec.Raw = msgspec.Raw(b"{}")
    """As they came: what they must be is for the tool to say, and what is not is never made."""
    timeout: float | None = None
    secret: str = ""
    """Only said where there are no connections."""


class _Finish(msgspec.Struct, frozen=True):
    value: msgspec.Raw = msgspec.Raw(b"null")


_Overlaps = tuple[str, ...] | msgspec.UnsetType
"""Calls that may still run and touch the same things; left out if there are none."""


class _Text(msgspec.Struct, frozen=True):
    text: str
    value: None = None
    outcome: str = "completed"
    overlaps: _Overlaps = msgspec.UNSET


class _Value(msgspec.Struct, frozen=True):
    """Its text is made of it by whoever wants that: so it travels once."""

    value: msgspec.Raw
    outcome: str = "completed"
    overlaps: _Overlaps = msgspec.UNSET


class Tally(msgspec.Struct):
    """What a run's calls of one tool came to."""

    count: int = 0
    failures: int = 0
    seconds: float = 0.0


_NULL: Final = b"null"
_encode: Final = msgspec.json.Encoder().encode


class ScriptCalls:
    """All callers of one run."""

    def __init__(self, context: ToolContext, granted: frozenset[str], *, most_calls: int) -> None:
        self._context = context
        self._granted = granted
        self._most = most_calls
        self._count = 0
        self._allowance = Allowance()
        self.secret: Final = secrets.token_hex(32)
        self.tallies: dict[str, Tally] = {}
        self.result: msgspec.Raw | None = None
        """What the script gave as its result, if it did."""

    def connection(self) -> Handler:
        """What answers the calls of one more connection."""
        return _Guest(self).handle

    async def letter(self, call: Call) -> bytes | None:
        """Answers a call that came by itself."""
        asked = _decoded(call, _Asked)
        self.check(asked.secret)
        _check_method(call)
        return await self.call(asked)

    def check(self, secret: str) -> None:
        if not hmac.compare_digest(secret.encode(), self.secret.encode()):
            raise CallError("that is not the secret of this run", name="ToolDeniedError")

    async def call(self, asked: _Asked) -> bytes:
        """Run a tool for the script, as one of its calls."""
        if asked.tool == FINISH:
            self.result = _given(asked)
            return _encode(_Text(""))
        self._count += 1
        if self._count > self._most:
            raise CallError(
                f"this script has made all of the {self._most:,} calls that one run may make",
                name="ToolDeniedError",
            )
        if asked.tool not in self._granted:
            known = ", ".join(sorted(self._granted)) or "none"
            raise CallError(
                f"the tool {asked.tool!r} is not granted to this script (granted: {known})",
                name="ToolDeniedError",
            )
        tally = self.tallies.setdefault(asked.tool, Tally())
        tally.count += 1
        text = memoryview(asked.arguments)
        if len(text) <= UNCOUNTED:
            return await self._call(asked, bytes(text), tally)
        count = values_in(text)
        if count > MOST_VALUES:
            tally.failures += 1
            raise CallError(
                f"the arguments of {asked.tool} hold more than {MOST_VALUES:,} values; "
                "pass less at once, or write a file and pass its path",
                name="ToolFailedError",
            )
        async with self._allowance.holding(count):
            given = bytes(text) if len(text) <= LONGEST_TEXT else _decoded_arguments(asked)
            return await self._call(asked, given, tally)

    async def _call(self, asked: _Asked, given: bytes | dict[str, Any], tally: Tally) -> bytes:
        seconds = None if asked.timeout is None else min(asked.timeout, LONGEST)
        outcome = await self._context.call(asked.tool, given, timeout=seconds)
        tally.seconds += outcome.duration
        if outcome.outcome != "completed":
            tally.failures += 1
            raise CallError(_why(outcome), name=_KINDS[outcome.outcome])
        value = _value(outcome)
        overlaps = outcome.overlaps or msgspec.UNSET
        if value is None:
            return _encode(_Text(outcome.text, overlaps=overlaps))
        return _encode(_Value(value, overlaps=overlaps))


class _Guest:
    """One connection."""

    def __init__(self, guests: ScriptCalls) -> None:
        self._guests = guests
        self._known = False

    async def handle(self, call: Call) -> bytes | None:
        if call.method == "hello":
            self._guests.check(_decoded(call, _Hello).secret)
            self._known = True
            call.welcome()
            return _encode({"version": VERSION})
        if not self._known:
            raise CallError("say hello with the run's secret first", name="ToolDeniedError")
        _check_method(call)
        return await self._guests.call(_decoded(call, _Asked))


def _decoded(call: Call, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(call.params, type=kind)
    except msgspec.DecodeError as error:
        raise CallError(f"{call.method}: {error}", name="ToolFailedError") from error


def _check_method(call: Call) -> None:
    if call.method != "call":
        raise CallError(f"there is no method {call.method!r}", code=METHOD_NOT_FOUND)


def _given(asked: _Asked) -> msgspec.Raw:
    """What a script gives as its result: not looked into, but text that can be passed on."""
    try:
        given = msgspec.json.decode(asked.arguments, type=_Finish).value
        return msgspec.Raw(str(memoryview(given), "utf-8").encode())
    except (msgspec.DecodeError, UnicodeError) as error:
        raise CallError(f"that is no result: {error}", name="ToolFailedError") from error


def _decoded_arguments(asked: _Asked) -> dict[str, Any]:
    try:
        return msgspec.json.decode(asked.arguments, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError) as error:
        text = f"the arguments of {asked.tool} cannot be read: {error}"
        raise CallError(text, name="ToolFailedError") from error


def _why(outcome: CallOutcome) -> str:
    """What the script reads in its exception."""
    if outcome.outcome == "denied":
        return f"{outcome.tool} was refused: {outcome.reason}"
    reason = f" ({outcome.reason})" if outcome.reason else ""
    return outcome.text or f"{outcome.outcome}{reason}"


def _value(outcome: CallOutcome) -> msgspec.Raw | None:
    """What the tool returned as a value, if that is one."""
    if len(outcome.content) == 1 and isinstance(outcome.content[0], Json):
        value = outcome.content[0].value
        return None if memoryview(value) == memoryview(_NULL) else value
    return None
