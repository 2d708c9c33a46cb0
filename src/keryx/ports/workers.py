"""The interface of worker processes, in which tools with `isolation="process"` run.

It also encodes the return values of tools, since that happens where the tool runs: on the loop, in
a thread, or in a worker process, which does not import the engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol, cast, runtime_checkable

import msgspec

from keryx.aio.capture import OutputSink
from keryx.aio.scope import Scope
from keryx.decoding import json_decoder
from keryx.errors import KeryxError, ToolFailedError
from keryx.messages import File, Image, Json, Needs, Part, Text, well_formed
from keryx.ports.place import Place
from keryx.ports.tool import Complete, Exact

_decode_part: Final = json_decoder(Part).decode
SELF_CANCELLED: Final = (
    "the tool cancelled itself: something that it awaited was cancelled inside it"
)


class Address(msgspec.Struct, frozen=True):
    """How another process finds a tool: a function ("package.module:name") and its arguments."""

    finder: str
    finder_args: tuple[str, ...]


@runtime_checkable
class Addressed(Protocol):
    """A tool that another process can find."""

    @property
    def address(self) -> Address: ...


class Returned(msgspec.Struct, frozen=True):
    """The encoded return value of a tool."""

    content: tuple[Part, ...]
    complete: bool
    exact: bool = False
    """Whether a script gets it unchanged; see `Exact`."""


class Workers(Protocol):
    """Runs the process-isolated calls of one session, in processes that are kept warm."""

    async def run(
        self,
        address: Address,
        arguments: str,
        *,
        scope: Scope,
        output: OutputSink,
        place: Place,
        env: Mapping[str, str],
        cwd: str,
        granted: Needs,
    ) -> Returned:
        """Run a tool with the JSON text of its arguments. Its output goes to `output`.

        A worker is reused for the same place (compared by ==), environment, folder and grant.
        Cancelling the scope ends the worker's whole process tree. Then this method raises
        `ToolCancelledError`, or returns the value that the tool returned within the grace. When it
        returns, nothing of the call runs any more. Cancel the scope, not the task: a cancelled task
        kills the worker without a report.
        """
        ...

    async def close(self) -> None:
        """End all workers and accept no more calls."""
        ...


def encode_return(value: Any) -> Returned:
    """Encode the return value of a tool; `ToolFailedError` if it cannot be encoded."""
    complete = isinstance(value, Complete)
    if isinstance(value, Complete):
        value = value.value
    if isinstance(value, Exact):
        return Returned(content_of(value.value), complete, exact=True)
    return Returned(content_of(value), complete)


def content_of(value: Any) -> tuple[Part, ...]:
    """Return a value as message content; `ToolFailedError` if that is not possible."""
    if value is None:
        return ()
    if isinstance(value, str):
        return (Text(well_formed(value)),)
    if isinstance(value, Text | Json | Image | File):
        return (_checked(value),)
    if isinstance(value, list | tuple):
        items = cast("list[Any] | tuple[Any, ...]", value)
        if items and all(isinstance(item, Text | Json | Image | File) for item in items):
            return tuple(map(_checked, items))
    return (Json(msgspec.Raw(_encode(value))),)


def _checked(part: Part) -> Part:
    """Check that a part which a tool created can be decoded again, and return it."""
    if isinstance(part, Text):
        return Text(well_formed(part.text))
    try:
        return _decode_part(msgspec.json.encode(part))
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise ToolFailedError(
            f"the tool did its work but returned a {type(part).__name__} that cannot be shown: "
            f"{error}. Its fields must have their declared types."
        ) from error


def described(error: BaseException) -> str:
    """Return the text of a tool's error for the result of its call."""
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 (a foreign error's own code, which may fail like any other)
        return name
    if isinstance(error, KeryxError):
        return text
    return f"{name}: {text}" if text else name


def _encode(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value, enc_hook=_encode_foreign)
    except Exception as error:
        # A foreign object's own code runs here, so any kind of error may come out of it.
        raise ToolFailedError(
            f"the tool did its work but returned a {type(value).__name__} that cannot be shown: "
            f"{error}. It should return text, or values that JSON has."
        ) from error


def _encode_foreign(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    raise NotImplementedError(f"a {type(value).__name__} has no JSON form")
