"""Runs the chat on the interactive terminal: the screen first, then the connection to the home."""

from __future__ import annotations

import argparse
import asyncio
import base64
import importlib
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, Final

from keryx.aio.clock import RealClock, Timer
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.cli.chatting.screen.completion import ChatCompleter
from keryx.cli.chatting.screen.keys import Pastes, bindings, learn_sequences
from keryx.cli.chatting.screen.screen import Screen
from keryx.errors import KeryxError

if TYPE_CHECKING:
    from keryx.cli.chatting.command_actions import CommandActions
    from keryx.cli.chatting.conversation import Conversation

TWICE: Final = 2.0
"""Seconds within which a second Ctrl+C leaves."""
DRAFT_PAUSE: Final = 0.5
"""Seconds without a key until the draft is stored."""
COPY_LIMIT: Final = 100_000
"""Bytes: terminals refuse longer texts for the clipboard."""
ENDING: Final = (signal.SIGTERM, signal.SIGHUP)


class ScreenChat:
    """Connects keys, screen and conversation."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._completer = ChatCompleter()
        self._screen = Screen(self._completer, vi=options.vi)
        self._pastes = Pastes()
        self._screen.bind(bindings(self._screen, self, self._pastes))
        self._clock = RealClock()
        self._group = Group(Scope("chat"))
        self._conversation: Conversation | None = None
        self._actions: CommandActions | None = None
        self._early: list[Callable[[], None]] = []
        self._last_interrupt = 0.0
        self._draft_timer: Timer | None = None
        self._error: BaseException | None = None
        self._stack = AsyncExitStack()

    async def run(self) -> int:
        """Chat until the person leaves."""
        learn_sequences()
        loop = asyncio.get_running_loop()
        for number in ENDING:
            loop.add_signal_handler(number, self._screen.leave)
        self._screen.draft.on_text_changed += self._draft_changed
        try:
            with suppress(EOFError):  # the terminal is gone
                await self._screen.run(self._connect)
            await self._keep_draft()
            self._say_goodbye()
        finally:
            for number in ENDING:
                loop.remove_signal_handler(number)
            self._screen.close()
            if self._draft_timer is not None:
                self._draft_timer.cancel()
            await self._group.leave()
            self._group.scope.close()
            await self._stack.aclose()
        if self._error is not None:
            raise self._error
        return 0

    # -- the connection

    def _connect(self) -> None:
        self._group.start(self._open(), name="connecting")

    async def _open(self) -> None:
        try:
            # Loaded after the first frame: a person can type meanwhile.
            opening = importlib.import_module("keryx.cli.chatting.opening")
            parts = await opening.open_chat(self._options, self._screen, self._copy, self._stack)
            self._conversation, self._actions = parts
        except KeryxError as error:
            self._error = error
            self._screen.leave()
            return
        conversation = self._conversation
        assert conversation is not None
        self._screen.source = conversation
        config = conversation.app.host_client.config
        self._screen.history.open(config.home)
        self._screen.is_in_tmux = "TMUX" in config.environment
        self._completer.workspace = lambda: conversation.transcript.workspace
        early, self._early = self._early, []
        for act in early:
            act()
        self._screen.refresh()
        rows = await conversation.app.store.sessions(limit=50)
        self._completer.sessions = [(row.session_id, row.title) for row in rows]

    def _soon(self, act: Callable[[CommandActions, Conversation], Any]) -> None:
        """Do it now, or as soon as there is a connection."""
        if self._actions is None or self._conversation is None:
            self._early.append(lambda: self._soon(act))
            self._screen.hint("Connecting…")
        else:
            act(self._actions, self._conversation)
            self._screen.attached = len(self._actions.attachments)

    # -- what the keys do

    def submit(self, text: str) -> None:
        self._soon(lambda actions, _: actions.submit(text))

    def steer(self, text: str) -> None:
        self._soon(lambda actions, _: actions.steer(text))

    def take_back(self) -> None:
        self._soon(
            lambda actions, conversation: conversation.start(actions.take_back(), name="queue")
        )

    def attach(self, path: str) -> None:
        self._soon(lambda actions, _: actions.submit(f"/attach {path}"))

    def interrupt(self) -> None:
        """Stop the turn; a second time, or with nothing to stop: leave."""
        now = self._clock.monotonic()
        is_second = now - self._last_interrupt < TWICE
        self._last_interrupt = now
        conversation = self._conversation
        if is_second:
            self._screen.leave()
        elif conversation is not None and conversation.transcript.is_running:
            self._screen.hint("Stopping… Ctrl+C again leaves")
            conversation.start(conversation.stop(), name="stopping")
        else:
            self._screen.hint("Ctrl+C again leaves")

    def choose(self, key: str) -> None:
        """Answer the request that is pinned."""
        if self._actions is None or self._conversation is None:
            return
        choices_of = importlib.import_module("keryx.cli.chatting.requests").choices_of
        request = self._conversation.transcript.pending.first
        if request is None:
            self._screen.hint("Nothing is waiting for you")
            return
        for choice in choices_of(request):
            if choice.key == key:
                self._actions.answer(request, choice)

    def answer_with(self, text: str) -> None:
        self._soon(lambda actions, _: actions.submit(f"/answer {text}"))

    def _copy(self, text: str) -> str:
        data = text.encode()
        if len(data) > COPY_LIMIT:
            return "The reply is too long for the clipboard; /export writes it to a file."
        self._screen.write_raw(f"\x1b]52;c;{base64.b64encode(data).decode()}\x07")
        return "Sent the last reply to the clipboard of the terminal."

    # -- the draft

    def _draft_changed(self, _sender: object) -> None:
        if self._draft_timer is not None:
            self._draft_timer.cancel()
        when = self._clock.monotonic() + DRAFT_PAUSE
        self._draft_timer = self._clock.call_at(when, self._start_keeping)

    def _start_keeping(self) -> None:
        self._draft_timer = None
        conversation = self._conversation
        if conversation is not None:
            text = self._pastes.expand(self._screen.draft.text)
            conversation.start(conversation.keep_draft(text), name="draft")

    async def _keep_draft(self) -> None:
        """Keep the draft when the chat ends: in the session, or else in the history."""
        text = self._pastes.expand(self._screen.draft.text)
        if text.strip():
            self._screen.history.append_string(text)
        if self._conversation is not None and self._conversation.session is not None:
            with suppress(KeryxError):
                await self._conversation.keep_draft(text)

    def _say_goodbye(self) -> None:
        conversation = self._conversation
        if conversation is None or conversation.session is None:
            return
        session_id = conversation.session.session_id
        if conversation.transcript.is_running:
            state = (
                "The turn is suspended"
                if conversation.app.host_client.is_host
                else "The turn goes on in the host"
            )
            print(f"{state}; `keryx chat -c` comes back to it.")
        else:
            print(f"`keryx chat --session {session_id}` continues here.")
