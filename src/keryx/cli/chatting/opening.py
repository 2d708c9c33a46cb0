"""Opens a home for the chat, and the session that the person asked for."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import AsyncExitStack

from keryx.app import Keryx
from keryx.cli.chatting.commands.command_actions import CommandActions
from keryx.cli.chatting.conversation import Conversation, Opening, View
from keryx.config import Config


def opening_of(options: argparse.Namespace) -> Opening:
    tools = options.tools
    if tools is not None:
        tools = [name for part in tools.split(",") if (name := part.strip())]
    workspace = str(options.workspace or ".")
    return Opening(tools, options.personality, options.approve, options.read_only, workspace)


def keryx_of(options: argparse.Namespace) -> Keryx:
    return Keryx(model=options.model, workspace=options.workspace or ".", home=options.home)


async def session_of(app: Keryx, options: argparse.Namespace) -> str | None:
    """Return the session to continue: the named one, the last one, or none."""
    if options.session is not None:
        return options.session
    if options.last:
        rows = await app.store.sessions(limit=1)
        return rows[0].session_id if rows else None
    return None


async def open_chat(
    options: argparse.Namespace,
    view: View,
    copy: Callable[[str], str],
    joined: Callable[[Config], None],
    stack: AsyncExitStack,
) -> tuple[Conversation, CommandActions]:
    """Join the home, call `joined`, and open the session. The stack closes what is opened."""
    app = await stack.enter_async_context(keryx_of(options))
    joined(app.host_client.config)
    conversation = Conversation(app, view, opening_of(options), attended=True)
    stack.push_async_callback(conversation.close)
    session_id = await session_of(app, options)
    if session_id is not None:
        await conversation.resume(session_id)
    return conversation, CommandActions(conversation, copy)
