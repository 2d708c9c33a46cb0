"""The host's side of a script: what it says over its connections, and which calls that becomes.

Knows nothing of processes. A connection that does not know the run's secret is told nothing; one
that closes takes its calls with it, for they run in its handlers.
"""

from __future__ import annotations

import asyncio
import hmac
from typing import Any, Final

import msgspec

from keryx.messages import CallOutcome, Json
from keryx.ports.tool import ToolContext
from keryx.rpc import Call, CallError
from keryx.rpc.peer import METHOD_NOT_FOUND, Handler

VERSION: Final = 1
FINISH: Final = "keryx.finish"
"""What a script calls to give its result."""
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
    arguments: dict[str, Any] = {}
    timeout: float | None = None


class _Answer(msgspec.Struct, frozen=True):
    text: str
    value: msgspec.Raw
    outcome: str = "completed"


class Tally(msgspec.Struct):
    """What a run's calls of one tool came to."""

    count: int = 0
    failures: int = 0
    seconds: float = 0.0


_NULL: Final = msgspec.Raw(b"null")
_encode: Final = msgspec.json.Encoder().encode


class Guests:
    """All connections of one run."""

    def __init__(self, context: ToolContext, secret: str, granted: frozenset[str]) -> None:
        self._context = context
        self._secret = secret
        self._granted = granted
        self.tallies: dict[str, Tally] = {}
        self.result: msgspec.Raw | None = None
        """What the script gave as its result, if it did."""

    def handler(self) -> Handler:
        return _Guest(self).handle

    def check(self, secret: str) -> bool:
        return hmac.compare_digest(secret.encode(), self._secret.encode())

    async def call(self, asked: _Asked) -> bytes:
        """Run a tool for the script, as one of its calls."""
        if asked.tool == FINISH:
            self.result = msgspec.Raw(msgspec.json.encode(asked.arguments.get("value")))
            return _encode(_Answer("", _NULL))
        if asked.tool not in self._granted:
            known = ", ".join(sorted(self._granted)) or "none"
            raise CallError(
                f"the tool {asked.tool!r} is not granted to this script (granted: {known})",
                name="ToolDeniedError",
            )
        tally = self.tallies.setdefault(asked.tool, Tally())
        tally.count += 1
        try:
            async with asyncio.timeout(asked.timeout):
                outcome = await self._context.call(asked.tool, asked.arguments)
        except TimeoutError:
            tally.failures += 1
            raise CallError(
                f"{asked.tool} did not end within {asked.timeout} s", name="ToolCancelledError"
            ) from None
        tally.seconds += outcome.duration
        if outcome.outcome != "completed":
            tally.failures += 1
            reason = f" ({outcome.reason})" if outcome.reason else ""
            text = outcome.text or f"{outcome.outcome}{reason}"
            raise CallError(text, name=_KINDS[outcome.outcome])
        return _encode(_Answer(outcome.text, _value(outcome)))


class _Guest:
    """One connection."""

    def __init__(self, guests: Guests) -> None:
        self._guests = guests
        self._known = False

    async def handle(self, call: Call) -> bytes | None:
        try:
            return await self._answer(call)
        except msgspec.DecodeError as error:
            raise CallError(f"{call.method}: {error}", name="ToolFailedError") from error

    async def _answer(self, call: Call) -> bytes | None:
        if call.method == "hello":
            hello = msgspec.json.decode(call.params, type=_Hello)
            if not self._guests.check(hello.secret):
                raise CallError("that is not the secret of this run", name="ToolDeniedError")
            self._known = True
            return _encode({"version": VERSION})
        if not self._known:
            raise CallError("say hello with the run's secret first", name="ToolDeniedError")
        if call.method == "call":
            return await self._guests.call(msgspec.json.decode(call.params, type=_Asked))
        raise CallError(f"there is no method {call.method!r}", code=METHOD_NOT_FOUND)


def _value(outcome: CallOutcome) -> msgspec.Raw:
    """What the tool returned as a value, if that is one."""
    if len(outcome.content) == 1 and isinstance(outcome.content[0], Json):
        return outcome.content[0].value
    return _NULL
