"""The interface to a chat platform: what comes from it, what goes to it, and how a send can fail.

A platform turns what it receives into the typed values below, or into nothing. It stores nothing:
`receive` hands over raw updates, and acknowledges them to the platform only when `take` has
returned, because they are durable then.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, Protocol

import msgspec

from keryx.errors import NobodyMustActError, UserMustActError

# -- what comes in


class Update(msgspec.Struct, frozen=True):
    """One raw update. `key` is unique for its source; a lane is handled in order of `number`."""

    key: str
    number: int
    lane: str
    body: bytes


class Address(msgspec.Struct, frozen=True):
    """Where messages go: a chat, and a topic in it."""

    chat: str
    topic: str | None = None
    is_private: bool = True


class Person(msgspec.Struct, frozen=True):
    """Who wrote or pressed; the name is for people only."""

    id: str
    name: str = ""


class ReceivedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file on the platform, not yet downloaded."""

    id: str
    name: str
    media_type: str
    size: int | None = None


class ReceivedMessage(msgspec.Struct, frozen=True, kw_only=True, tag="message"):
    """Somebody wrote. `is_addressed`: to the bot; in a group it is mentioned or replied to."""

    address: Address
    person: Person
    message_id: str
    text: str = ""
    files: tuple[ReceivedFile, ...] = ()
    is_addressed: bool = True
    album: str | None = None
    """Messages with the same album are one message."""
    is_part: bool = False
    """Whether more of it may follow at once: an album, a text that was cut, forwarded messages."""
    is_edit: bool = False
    """Whether the person changed this message, which they had sent before."""
    quote: str = ""
    """Text that somebody else wrote: quoted or forwarded."""


class Press(msgspec.Struct, frozen=True, kw_only=True, tag="press"):
    """Somebody pressed a button."""

    address: Address
    person: Person
    press_id: str
    data: str
    message_id: str | None = None


Incoming = ReceivedMessage | Press


# -- what goes out

SpanKind = Literal["bold", "italic", "strikethrough", "code", "pre", "text_link", "blockquote"]


class Span(msgspec.Struct, frozen=True):
    """A formatted part of a text; start and length count UTF-16 units."""

    kind: SpanKind
    start: int
    length: int
    value: str = ""
    """The address of a link, or the language of code."""


class Button(msgspec.Struct, frozen=True):
    """A button below a message."""

    text: str
    data: str


class OutgoingFile(msgspec.Struct, frozen=True):
    """A file to send, by the hash of its content."""

    blob: str
    name: str
    media_type: str


class Content(msgspec.Struct, frozen=True):
    """One message as it is sent: a text that fits the platform's limit, or a file."""

    text: str = ""
    spans: tuple[Span, ...] = ()
    buttons: tuple[tuple[Button, ...], ...] = ()
    file: OutgoingFile | None = None


class Sending(msgspec.Struct, frozen=True, kw_only=True):
    """One message to send. `key` names it for good: a platform may use it to send only once."""

    key: str
    address: Address
    content: Content
    reply_to: str | None = None
    data: bytes | None = None
    """The content of the file, if there is one."""


# -- how it fails


class NotSentError(NobodyMustActError):
    """The message certainly did not arrive; it can be sent again after `retry_after` seconds."""

    def __init__(
        self, text: str, *, retry_after: float | None = None, is_flood: bool = False
    ) -> None:
        super().__init__(text)
        self.retry_after = retry_after
        self.is_flood = is_flood


class FateUnknownError(NobodyMustActError):
    """Nobody can tell whether the message arrived."""


class MessageRefusedError(NobodyMustActError):
    """The platform will never take this message.

    `is_gone`: the message to edit does not exist. `is_format`: it may take the text alone,
    or the file as a document.
    """

    def __init__(self, text: str, *, is_gone: bool = False, is_format: bool = False) -> None:
        super().__init__(text)
        self.is_gone = is_gone
        self.is_format = is_format


class PlatformError(UserMustActError):
    """The platform cannot be used until a person acts, for instance because of a wrong token."""


# -- the platform


class Abilities(msgspec.Struct, frozen=True, kw_only=True):
    """What the platform can do."""

    edits: bool
    """Whether a message can be changed after it was sent."""
    drafts: bool = False
    """Whether an answer can be shown as a draft, with a Stop button, in private chats."""
    sends_once: bool = False
    """Whether a repeated `key` is one message, so that a send of unknown fate can be repeated."""
    largest_download: int | None = None
    """Bytes."""
    longest_text: int | None = None
    """UTF-16 units of one message."""


Take = Callable[[Sequence[Update]], Awaitable[None]]


class Platform(Protocol):
    """A chat platform. Belongs to one loop; `start` first, `close` last."""

    name: str
    abilities: Abilities

    @property
    def account(self) -> str:
        """The bot: outgoing messages and sessions belong to it."""
        ...

    @property
    def source(self) -> str:
        """The origin of updates: their keys are unique in it."""
        ...

    async def start(self) -> None:
        """Connect. `PlatformError` says what a person must do."""
        ...

    async def receive(self, take: Take) -> None:
        """Receive until cancelled; acknowledge updates only after `take` has returned."""
        ...

    def read(self, body: bytes) -> Incoming | None:
        """Return what an update says; None if it is nothing for the gateway."""
        ...

    def format(self, markdown: str) -> list[Content]:
        """Return a text as messages that fit the platform's limits."""
        ...

    async def send(self, sending: Sending) -> str:
        """Send a message; return its id on the platform."""
        ...

    async def edit(self, sending: Sending, message_id: str) -> None:
        """Replace a message. It succeeds if the message is like this already."""
        ...

    async def show_draft(self, sending: Sending, draft_id: int) -> None:
        """Show an answer so far; it disappears by itself. A press of Stop is `draft:ID`."""
        ...

    async def settle(self, press: Press, text: str) -> None:
        """Tell the person who pressed a button what came of it. Errors are not reported."""
        ...

    async def download(self, file: ReceivedFile) -> bytes: ...

    async def close(self) -> None: ...
