"""Runs the chat on the interactive terminal: the screen first, then the connection to the home."""

from __future__ import annotations

import argparse
import asyncio
import base64
import signal
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, Final

from keryx.aio.bridge import Bridge
from keryx.aio.clock import RealClock, Timer
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.cli.chatting.screen.completion import ChatCompleter
from keryx.cli.chatting.screen.keys import Pastes, bindings, learn_sequences
from keryx.cli.chatting.screen.screen import Screen
from keryx.cli.chatting.screen.unsent_draft import UnsentDraft
from keryx.errors import KeryxError

if TYPE_CHECKING:
    from keryx.cli.chatting.commands.command_actions import CommandActions
    from keryx.cli.chatting.conversation import Conversation
    from keryx.cli.chatting.screen.drawing import Drawing
    from keryx.cli.chatting.transcript import Transcript
    from keryx.config import Config

    Open = Callable[
        [
            argparse.Namespace,
            Screen,
            Callable[[str], str],
            Callable[[Config], None],
            AsyncExitStack,
        ],
        Awaitable[tuple[Conversation, CommandActions]],
    ]

TWICE: Final = 2.0
"""Seconds within which a second Ctrl+C leaves."""
CONNECTING: Final = "Connecting…"
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
        self._bridge = Bridge(self._group.scope)
        self._unsent = UnsentDraft()
        self._abandoned: list[str] = []
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
            unsent = (
                0 if self._conversation is None else await self._conversation.outbox.wait_sent()
            )
            await self._keep_draft()
            if unsent:
                print(f"{unsent} message(s) or command(s) were not sent; Up brings them back.")
            self._say_goodbye()
        finally:
            for number in ENDING:
                loop.remove_signal_handler(number)
            self._screen.close()
            if self._draft_timer is not None:
                self._draft_timer.cancel()
            await self._group.leave()
            await self._bridge.close()
            self._group.scope.close()
            await self._stack.aclose()
        if self._error is not None:
            raise self._error
        return 0

    # -- the connection

    def _connect(self) -> None:
        self._group.start(self._open(), name="connecting")

    async def _open(self) -> None:
        # Loaded after the first frame, and in a thread: a person can type meanwhile.
        open_chat, self._screen.drawing = await self._bridge.to_thread(_load)
        try:
            self._conversation, self._actions = await open_chat(
                self._options, self._screen, self._copy, self._joined, self._stack
            )
        except KeryxError as error:
            self._error = error
            self._screen.leave()
            return
        conversation = self._conversation
        self._screen.source = self
        self._completer.workspace = lambda: conversation.workspace
        for text in self._abandoned:
            self._screen.put_back(text)
        early, self._early = self._early, []
        for act in early:
            act()
        self._start_keeping()
        self._screen.drop_hint(CONNECTING)
        self._screen.refresh()
        await self._learn_sessions(conversation)

    async def _learn_sessions(self, conversation: Conversation) -> None:
        rows = await conversation.app.store.sessions(limit=50)
        self._completer.sessions = [(row.session_id, row.title) for row in rows]

    def _joined(self, config: Config) -> None:
        self._screen.history.open(config.home)
        self._abandoned = self._unsent.open(config.home)
        if "TMUX" in config.environment:
            self._screen.enter_tmux()

    @property
    def transcript(self) -> Transcript:
        assert self._conversation is not None
        return self._conversation.transcript

    @property
    def attached(self) -> int:
        return 0 if self._actions is None else len(self._actions.attachments.files)

    def _soon(self, act: Callable[[CommandActions, Conversation], Any]) -> None:
        """Do it now, or as soon as there is a connection."""
        if self._actions is None or self._conversation is None:
            self._early.append(lambda: self._soon(act))
            self._screen.hint(CONNECTING)
        else:
            act(self._actions, self._conversation)

    # -- what the keys do

    def submit(self, text: str) -> None:
        self._last_interrupt = 0.0  # whoever goes on typing does not mean to leave
        self._soon(lambda actions, _: actions.submit(text))

    def steer(self, text: str) -> None:
        self._soon(lambda actions, _: actions.steer(text))

    def take_back(self) -> None:
        self._soon(
            lambda actions, conversation: conversation.start(actions.take_back(), name="queue")
        )

    def attach(self, path: str) -> None:
        self._soon(lambda actions, _: actions.submit(f"/attach {path}".rstrip()))

    def interrupt(self) -> None:
        """Stop the turn; a second time, or with nothing to stop: leave."""
        now = self._clock.monotonic()
        is_second = now - self._last_interrupt < TWICE
        self._last_interrupt = now
        conversation = self._conversation
        if is_second:
            self._screen.leave()
        elif self._early or (conversation is not None and conversation.is_busy):
            self._soon(lambda _, chat: chat.start(chat.stop(), name="stopping"))
            self._screen.hint("Stopping… Ctrl+C again leaves")
        elif conversation is not None and conversation.transcript.is_compacting:
            self._screen.hint("The summary goes on; Ctrl+C again leaves")
        else:
            self._screen.hint("Ctrl+C again leaves")

    def choose(self, key: str) -> None:
        """Answer the request that is on the screen."""
        if self._actions is None or self._conversation is None:
            return
        try:
            request = self._conversation.shown_request
        except KeryxError as error:
            self._screen.refresh()
            self._screen.hint(str(error))
            return
        if request is not None:
            self._actions.choose(request, key)
        else:
            self._screen.hint("Nothing is waiting for you")

    def answer_with(self, text: str) -> None:
        self._soon(lambda actions, _: actions.submit(f"/answer {text}"))

    def _copy(self, text: str) -> str:
        data = text.encode()
        if len(data) > COPY_LIMIT:
            return "The reply is too long for the clipboard; /export writes it to a file."
        self._screen.write_through(f"\x1b]52;c;{base64.b64encode(data).decode()}\x07")
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
        text = self._pastes.expand(self._screen.draft.text)
        if conversation is not None and conversation.session is not None:
            conversation.start(conversation.keep_draft(text), name="draft")
            self._unsent.write("")
        else:
            self._unsent.write(text)

    async def _keep_draft(self) -> None:
        """Keep the draft when the chat ends: in the session, or else in the history."""
        text = self._pastes.expand(self._screen.draft.text)
        if text.strip():
            self._screen.history.append_string(text)
        if self._conversation is not None and self._conversation.session is not None:
            with suppress(KeryxError):
                await self._conversation.keep_draft(text)
        self._unsent.close()
        if self._conversation is None:
            for unwritten in self._screen.history.unwritten:
                print(f"Not sent: {unwritten}")

    def _say_goodbye(self) -> None:
        conversation = self._conversation
        if conversation is None or conversation.session is None:
            return
        session_id = conversation.session.session_id
        if conversation.transcript.is_running:
            state = (
                "The turn is suspended"
                if conversation.app.host_client.local_host is not None
                else "The turn goes on in the host"
            )
            print(f"{state}; `keryx chat -c` comes back to it.")
        else:
            print(f"`keryx chat --session {session_id}` continues here.")


def _load() -> tuple[Open, Drawing]:
    """Load what the first frame does not need: the library, and the packages that draw replies."""
    from keryx.cli.chatting.opening import open_chat  # noqa: PLC0415
    from keryx.cli.chatting.screen.drawing import Drawing  # noqa: PLC0415

    return open_chat, Drawing()
