"""What the scripted model server is told to answer. It knows neither HTTP nor an API."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from keryx.events import Usage

Fault = Literal[
    "hang before headers",
    "hang after headers",
    "hang mid-stream",
    "reset mid-stream",
    "close mid-stream",
    "end mid-stream",
    "garbage",
    "garbage mid-stream",
    "not http",
    "html",
    "error mid-stream",
    "wrong content type",
    "one byte at a time",
    "crlf",
    "one write",
    "no finish_reason",
    "no done",
    "no usage",
    "keeps open",
]
"""What goes wrong, or is odd.

- hang: nothing follows until the test lets it, or hangs up;
- reset, close, end: the connection is reset, closed in the middle of the HTTP body, or the body
  ends properly but too early;
- one write: all chunks come at once; keeps open: the body does not end after its last chunk.
"""


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call to ask for. Arguments given as a text are sent as they are."""

    tool: str
    arguments: dict[str, Any] | str = {}
    id: str = ""

    @property
    def text(self) -> str:
        if isinstance(self.arguments, str):
            return self.arguments
        return msgspec.json.encode(self.arguments).decode()


class Reply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One answer of the server. With a status other than 200 it is an error object."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    usage: Usage = Usage(input_tokens=10, output_tokens=5)
    chunk: int = 8
    """How many characters each chunk has."""
    stop: str = ""
    """The finish_reason, if it is to be another than the usual one."""
    fault: Fault | None = None
    after: int = 2
    """How many chunks come before a fault in mid-stream; the first one has no content."""
    status: int = 200
    headers: dict[str, str] = {}
    code: str | int | None = None
    message: str = "scripted failure"
    delay: float = 0.0
    """Seconds before the answer."""
    pace: float = 0.0
    """Seconds between chunks."""


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A script as a file holds it."""

    replies: tuple[Reply, ...]
    repeat: bool = False
    """Whether the first reply follows the last."""
