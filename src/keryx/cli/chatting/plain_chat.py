"""The chat as plain lines: for screen readers, dumb terminals and pipes. It moves no cursor.

Input is read line by line. Replies are printed block by block, when a block is finished.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Final, TextIO

from keryx.aio.bridge import Bridge
from keryx.aio.scope import Scope, call_soon
from keryx.cli.chatting.commands.command_actions import CommandActions
from keryx.cli.chatting.conversation import Conversation
from keryx.cli.chatting.opening import keryx_of, opening_of, session_of
from keryx.cli.chatting.pieces import Piece
from keryx.cli.chatting.requests import choices_of
from keryx.cli.screens.markdown_stream import NEXT_ITEM

EXIT_CODES: Final = {"completed": 0, "failed": 1, "parked": 3, "cancelled": 130}
LEAVING: Final = ("/quit", "/exit")
TO_STDOUT: Final = ("reply", "code")


class PlainView:
    """Prints pieces: replies to standard output, everything else to standard error in a pipe."""

    def __init__(self, *, is_terminal: bool) -> None:
        self._is_terminal = is_terminal
        self._last_kind = ""
        self.conversation: Conversation | None = None

    def show(self, pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            self._print(piece)
        pending = None if self.conversation is None else self.conversation.transcript.pending
        if any(piece.kind == "request" for piece in pieces) and pending and pending.first:
            choices = choices_of(pending.first)
            lines = [f"/{number} {choice.label}" for number, choice in enumerate(choices, 1)]
            print("\n".join(lines or ["/answer TEXT"]), file=self._notes, flush=True)

    @property
    def _notes(self) -> TextIO:
        return sys.stdout if self._is_terminal else sys.stderr

    def _print(self, piece: Piece) -> None:
        if piece.kind == "user" and not self._is_terminal:
            return
        to_stdout = self._is_terminal or piece.kind in TO_STDOUT
        is_next_block = self._last_kind in TO_STDOUT and piece.kind in TO_STDOUT
        goes_on = piece.kind == self._last_kind == "code" or piece.detail == NEXT_ITEM
        if is_next_block and not goes_on:
            print()
        self._last_kind = piece.kind if to_stdout else self._last_kind
        text = f"> {piece.text}" if piece.kind == "user" else piece.text
        print(text, file=sys.stdout if to_stdout else sys.stderr, flush=True)

    def refresh(self) -> None:
        """Do nothing: plain lines show what is finished."""

    def put_back(self, text: str) -> None:
        if text:
            print(f"[not sent: {text}]", file=sys.stderr, flush=True)

    def alert(self, text: str) -> None:
        """Do nothing: the lines themselves are read aloud."""

    def leave(self) -> None:
        """Do nothing: the reader of the lines ends the chat itself."""


async def run_plain(options: argparse.Namespace) -> int:
    """Chat until the input ends; then wait for the last turn. Return its exit code."""
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    async with keryx_of(options) as app:
        view = PlainView(is_terminal=is_terminal)
        conversation = Conversation(app, view, opening_of(options), attended=is_terminal)
        view.conversation = conversation
        scope = Scope("reading lines")
        bridge = Bridge(scope)
        try:
            session_id = await session_of(app, options)
            if session_id is not None:
                await conversation.resume(session_id)
            if is_terminal:
                print("Keryx. /help shows all commands.", flush=True)
            with _Interrupts(conversation):
                await _read_lines(conversation, bridge)
        finally:
            await conversation.close()
            await bridge.close()
            scope.close()
        finished = conversation.transcript.last_finished
        return 0 if finished is None or is_terminal else EXIT_CODES[finished.outcome]


async def _read_lines(conversation: Conversation, bridge: Bridge) -> None:
    actions = CommandActions(conversation, _cannot_copy)
    while True:
        line = await bridge.to_thread(_read_line)
        if line is None:
            await conversation.wait_resting()
            return
        if line.strip() in LEAVING:
            return
        if line.strip():
            actions.submit(line)


class _Interrupts:
    """Ctrl+C stops the turn; a second one, or one without a turn, ends the program."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._loop = asyncio.get_running_loop()
        self._before = signal.getsignal(signal.SIGINT)
        self._is_second = False

    def __enter__(self) -> None:
        signal.signal(signal.SIGINT, self._handle)

    def __exit__(self, *exc: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        is_running = self._conversation.transcript.is_running
        if (self._is_second or not is_running) and callable(self._before):
            self._before(number, frame)
            return
        self._is_second = True
        call_soon(self._loop, self._stop)

    def _stop(self) -> None:
        print("[stopping; Ctrl+C again leaves]", file=sys.stderr, flush=True)
        self._conversation.start(self._stop_turn(), name="stopping")

    async def _stop_turn(self) -> None:
        await self._conversation.stop()
        self._is_second = False


def _cannot_copy(text: str) -> str:
    return f"{text}\n[plain mode cannot reach the clipboard]"


def _read_line() -> str | None:
    line = sys.stdin.readline()
    return line.rstrip("\n") if line else None
