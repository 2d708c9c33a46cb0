"""A generic platform: programs post signed JSON, and answers are posted to their address.

Each request to the other side carries the message's key in `id`: the other side ignores a key that
it has, so a send of unknown fate is simply repeated.
"""

from __future__ import annotations

import asyncio
import io
import logging
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from keryx.aio.clock import Clock
from keryx.decoding import json_decoder
from keryx.gateway.listener import Listener, Posted
from keryx.gateway.talk.message_parts import command_in
from keryx.gateway.webhook.signature import HEADER, is_valid, sign
from keryx.ports.platform import (
    Abilities,
    Address,
    Content,
    FateUnknownError,
    Incoming,
    MessageRefusedError,
    NotSentError,
    Person,
    Press,
    ReceivedFile,
    ReceivedMessage,
    Sending,
    Take,
    Update,
)

if TYPE_CHECKING:
    import aiohttp

PATH: Final = "/webhook"
LARGEST_BODY: Final = 16 * 1024 * 1024
"""Bytes of one request, with its files."""
ACCEPTED: Final = 202
REFUSED: Final = 401
INVALID: Final = 422
TOO_MANY: Final = 429
_log: Final = logging.getLogger("keryx.gateway")

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class PostedFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file that comes with a message."""

    name: Name
    media_type: Annotated[str, msgspec.Meta(pattern=r"^[\w.+-]+/[\w.+-]+$", max_length=100)]
    base64: str


class PostedMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a program posts: a text, or the data of a button that was pressed."""

    id: Name
    """Unique; the same id twice is one message."""
    chat: Name
    person: Name
    text: str = ""
    topic: Name | None = None
    group: bool = False
    """Whether others than this person read the chat: then its session is for all of them."""
    press: str | None = None
    name: str = ""
    files: tuple[PostedFile, ...] = ()


_decoder: Final = json_decoder(PostedMessage)


class Webhook:
    """Belongs to one loop."""

    name: str = "webhook"
    abilities: Abilities = Abilities(edits=False, sends_once=True)

    def __init__(
        self, url: str, secret: str, clock: Clock, listener: Listener, *, timeout: float = 20.0
    ) -> None:
        self._url = url
        self._secret = secret
        self._clock = clock
        self._listener = listener
        self._timeout = timeout
        self._session: aiohttp.ClientSession | None = None

    @property
    def account(self) -> str:
        return "webhook"

    @property
    def source(self) -> str:
        return "webhook"

    async def start(self) -> None:
        import aiohttp  # noqa: PLC0415 (heavy)

        self._session = aiohttp.ClientSession(
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=self._timeout),
        )

    async def receive(self, take: Take) -> None:
        async def handle(posted: Posted) -> int:
            header = posted.headers.get(HEADER, "")
            if not is_valid(self._secret, posted.body, header, self._clock.wall()):
                return REFUSED
            try:
                message = _decoder.decode(posted.body)
                for file in message.files:
                    b64decode(file.base64, validate=True)
            except (msgspec.DecodeError, ValueError) as error:
                _log.info("a posted message is not valid: %s", error)
                return INVALID
            await take([self._update(message, posted.body)])
            return ACCEPTED

        self._listener.add(PATH, handle, largest=LARGEST_BODY)
        try:
            await asyncio.get_running_loop().create_future()  # until cancelled
        finally:
            self._listener.remove(PATH)

    def _update(self, message: PostedMessage, body: bytes) -> Update:
        is_urgent = message.press is not None or command_in(message.text)[0] in ("stop", "status")
        lane = f"{message.chat}/{message.topic or ''}{'!' if is_urgent else ''}"
        # Posted messages have no numbers: a lane is handled in the order of their arrival.
        return Update(message.id, 0, lane, body)

    def read(self, body: bytes) -> Incoming | None:
        message = _decoder.decode(body)
        address = Address(message.chat, message.topic, is_private=not message.group)
        person = Person(message.person, message.name)
        if message.press is not None:
            return Press(address=address, person=person, press_id=message.id, data=message.press)
        return ReceivedMessage(
            address=address,
            person=person,
            message_id=message.id,
            text=message.text,
            files=tuple(_received(file) for file in message.files),
        )

    def format(self, markdown: str) -> list[Content]:
        return [Content(text=markdown)]

    async def send(self, sending: Sending) -> str:
        content = sending.content
        body: dict[str, Any] = {
            "id": sending.key,
            "chat": sending.address.chat,
            "topic": sending.address.topic,
            "text": content.text,
            "buttons": [
                {"text": button.text, "press": button.data}
                for row in content.buttons
                for button in row
            ],
        }
        if content.file is not None and sending.data is not None:
            body["file"] = {
                "name": content.file.name,
                "media_type": content.file.media_type,
                "base64": b64encode(sending.data).decode(),
            }
        await self._post(msgspec.json.encode(body))
        return sending.key

    async def _post(self, body: bytes) -> None:
        from aiohttp import ClientConnectorError, ClientError  # noqa: PLC0415 (heavy)

        assert self._session is not None
        headers = {
            "Content-Type": "application/json",
            "X-Keryx-Signature": sign(self._secret, body, self._clock.wall()),
        }
        try:
            async with self._session.post(
                self._url, data=io.BytesIO(body), headers=headers
            ) as response:
                status, after = response.status, response.headers.get("Retry-After", "")
        except ClientConnectorError as error:
            raise NotSentError(f"{self._url} cannot be reached") from error
        except (TimeoutError, ClientError, OSError) as error:
            raise FateUnknownError(f"{self._url} has not answered") from error
        if status == TOO_MANY:
            seconds = float(after) if after.isdecimal() else None
            raise NotSentError("too many requests", retry_after=seconds, is_flood=True)
        if status >= 500:  # noqa: PLR2004 (all errors of a server)
            raise FateUnknownError(f"{self._url} answered with {status}")
        if status >= 300:  # noqa: PLR2004 (all that are no success)
            raise MessageRefusedError(f"{self._url} answered with {status}")

    async def edit(self, sending: Sending, message_id: str) -> None:  # noqa: ARG002 (the port's)
        raise MessageRefusedError("a posted message cannot be changed", is_gone=True)

    async def settle(self, press: Press, text: str) -> None:
        """A press has no answer of its own here; its effect is in the messages that follow."""

    async def show_draft(self, sending: Sending, draft_id: int) -> None:  # noqa: ARG002 (the port's)
        raise MessageRefusedError("a posted message cannot be a draft")

    async def download(self, file: ReceivedFile) -> bytes:
        return b64decode(file.id)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


def _received(file: PostedFile) -> ReceivedFile:
    # The file came with the message, so its content names it.
    return ReceivedFile(id=file.base64, name=file.name, media_type=file.media_type)
