"""Calls that a person runs in the chat, without a model: `!COMMAND` and `/exec CODE`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

import msgspec

from keryx import events as ev
from keryx.cli.chatting.conversation import Conversation
from keryx.errors import UserMustActError

MARK: Final = "!"
"""What a command for the shell begins with. In a pipe it is a message like any other: nothing shows
that a person wrote it."""


class OwnCalls:
    """Runs tools for a person. What they do is shown as the calls of a turn are."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    def command_in(self, text: str) -> str:
        """Return the command that a person typed for the shell; empty: the text is none."""
        is_command = text.startswith(MARK) and self._conversation.is_attended
        return text[len(MARK) :].strip() if is_command else ""

    async def run_command(self, command: str) -> None:
        await self._run("terminal", {"command": command})

    async def run_code(self, code: str) -> None:
        if not code:
            raise UserMustActError("/exec needs a value: /exec CODE")
        await self._run("execute_code", {"code": code})

    async def _run(self, tool: str, arguments: dict[str, Any]) -> None:
        session = await self._conversation.current()
        events = session.run(
            tool,
            msgspec.json.encode(arguments).decode(),
            attended=self._conversation.is_attended,
        )
        await self._conversation.beside(_until_ended(events), name=tool)


async def _until_ended(events: AsyncGenerator[ev.Event]) -> None:
    async with aclosing(events):
        async for _ in events:
            pass  # the conversation shows them
