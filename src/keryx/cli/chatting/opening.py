"""Opens a home for the chat, and the session that the person asked for."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import AsyncExitStack

from keryx.app import Keryx
from keryx.cli.chatting.commands.command_actions import CommandActions
from keryx.cli.chatting.conversation import Conversation
from keryx.cli.chatting.pieces import Piece, printable
from keryx.cli.chatting.view import Opening, View
from keryx.cli.session_flags import change_session, check_new, in_words, tool_names
from keryx.config import Config


def opening_of(options: argparse.Namespace) -> Opening:
    return Opening(
        tool_names(options),
        options.personality,
        options.approve,
        bool(options.read_only),
        str(options.workspace or "."),
    )


def keryx_of(options: argparse.Namespace) -> Keryx:
    return Keryx(model=options.model, workspace=options.workspace or ".", home=options.home)


async def begin(conversation: Conversation, options: argparse.Namespace) -> None:
    """Continue the session that the person asked for, or check the flags of a new one."""
    app, view = conversation.app, conversation.view
    session_id = await _session_of(app, options)
    if session_id is None:
        if warning := await check_new(app, options):
            view.show([Piece("note", printable(warning))])
        return
    session = await conversation.resume(session_id)
    if changes := await change_session(app, session, options):
        running = " The running turn keeps its settings." * conversation.transcript.is_running
        view.show([Piece("note", printable(in_words(changes) + running))])


async def _session_of(app: Keryx, options: argparse.Namespace) -> str | None:
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
    await begin(conversation, options)
    return conversation, CommandActions(conversation, copy)
