"""The files that go with the next message: where they come from, and when they are sent."""

from __future__ import annotations

import mimetypes
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from keryx.cli.chatting.commands.clipboard_image import read_image
from keryx.cli.chatting.commands.slash_commands import typed_path
from keryx.cli.chatting.conversation import Conversation
from keryx.cli.chatting.pieces import Piece, printable
from keryx.errors import KeryxError, UserMustActError
from keryx.messages import File, Image

LARGEST_ATTACHMENT: Final = 20_000_000
CLIPBOARD: Final = "clipboard.png"


class Attachments:
    """The files of one chat that are not sent yet."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self.files: list[Image | File] = []
        self._expected = 0

    @property
    def is_complete(self) -> bool:
        """Whether every file that a person has named is here."""
        return self._expected == 0

    def expect(self) -> None:
        """A person has named a file; `attach` comes later."""
        self._expected += 1

    async def attach(self, word: str) -> None:
        """Upload a file, or the image in the clipboard, which was expected."""
        try:
            await self._attach(word)
        finally:
            self._expected -= 1

    async def _attach(self, word: str) -> None:
        app = self._conversation.app
        file = typed_path(self._conversation.workspace, word)
        if word:
            data = await app.host_client.to_thread(lambda: _read(file))
        else:
            file = Path(CLIPBOARD)
            data = await read_image(app.host_client.config.environment)
        media_type = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        self.files.append(await app.upload(data, file.name, media_type))
        self._conversation.view.refresh()
        text = f"Attached {printable(file.name)} to the next message."
        self._conversation.view.show([Piece("note", text)])

    def put_back(self, files: Sequence[Image | File]) -> None:
        """Keep these for the next message: theirs is not sent, or was withdrawn."""
        self.files = [*files, *self.files]

    async def send_with(self, send: Callable[[list[Image | File]], Awaitable[None]]) -> None:
        """Send a message with the files that are here; an error brings them back."""
        files, self.files = self.files, []
        try:
            await send(files)
        except KeryxError:
            self.put_back(files)
            raise


def _read(file: Path) -> bytes:
    try:
        if file.stat().st_size > LARGEST_ATTACHMENT:
            raise UserMustActError(f"{file} is larger than 20 MB; attach a smaller file")
        return file.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserMustActError(f"{file} was not attached: {reason}") from error
