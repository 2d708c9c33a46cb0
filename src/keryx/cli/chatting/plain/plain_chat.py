"""The chat as plain lines: for screen readers, dumb terminals and pipes. It moves no cursor.

Input is read line by line. Replies are printed block by block, when a block is finished.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Final, TextIO

from keryx.aio.bridge import Bridge
from keryx.aio.scope import Scope, call_soon
from keryx.cli.chatting.commands.command_actions import CommandActions
from keryx.cli.chatting.conversation import Conversation
from keryx.cli.chatting.opening import begin, keryx_of, opening_of
from keryx.cli.chatting.pieces import Piece
from keryx.cli.chatting.requests import choices_of, request_id
from keryx.cli.screens.markdown_stream import NEXT_ITEM

EXIT_CODES: Final = {"completed": 0, "failed": 1, "parked": 3, "cancelled": 130}
LEAVING: Final = ("/quit", "/exit")
BLOCKS: Final = (
    ("/text", "Collect the lines of one message"),
    ("/end", "Send them as one message"),
    ("/drop", "Drop them"),
)
"""The commands that only plain lines need."""
OF_NO_TERMINAL: Final = 80
"""Columns."""
TO_STDOUT: Final = ("reply", "code")


class PlainView:
    """Prints pieces: replies to standard output, everything else to standard error in a pipe."""

    def __init__(self, *, is_terminal: bool) -> None:
        self._is_terminal = is_terminal
        self._last_kind = ""
        self.conversation: Conversation | None = None
        self.shown_request = ""
        self.has_unsent = False
        """Whether something that was typed was not sent."""

    def show(self, pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            self._print(piece)
        pending = None if self.conversation is None else self.conversation.transcript.pending
        if any(piece.kind == "request" for piece in pieces) and pending and pending.first:
            self.shown_request = request_id(pending.first)
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
            self.has_unsent = True
            print(f"[not sent: {text}]", file=sys.stderr, flush=True)

    def alert(self, text: str) -> None:
        """Do nothing: the lines themselves are read aloud."""

    @property
    def columns(self) -> int:
        try:
            return os.get_terminal_size(sys.stdout.fileno()).columns
        except OSError:
            return OF_NO_TERMINAL

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
            await begin(conversation, options)
            if is_terminal:
                print("Keryx. /help shows all commands.", flush=True)
            with _Interrupts(conversation):
                await _read_lines(conversation, view, bridge, is_terminal=is_terminal)
        finally:
            await conversation.close()
            await bridge.close()
            scope.close()
        if is_terminal:
            return 0
        finished = conversation.transcript.last_finished
        code = 0 if finished is None else EXIT_CODES[finished.outcome]
        return code or int(view.has_unsent)


class _LineBlock:
    """Collects the lines of one message, between `/text` and `/end`.

    A terminal hands over a pasted text line by line, whenever they come: without a mark, nobody can
    tell which of them belong together.
    """

    def __init__(self, view: PlainView) -> None:
        self._view = view
        self._lines: list[str] | None = None

    def take(self, line: str) -> str:
        """Return what is to be submitted now: the line, a whole block, or nothing."""
        word = line.strip()
        if self._lines is None:
            if word != "/text":
                return line
            self._lines = []
            self._view.show([Piece("note", "/end sends the lines that follow; /drop drops them.")])
        elif word in ("/end", "/drop"):
            text, self._lines = "\n".join(self._lines), None
            if word == "/drop":
                return ""
            # A space keeps a text that begins as a command does from being one.
            return f" {text}" if text.startswith(("/", "!")) else text
        else:
            self._lines.append(line)
        return ""

    def close(self) -> None:
        """Say what was not sent."""
        self._view.put_back("\n".join(self._lines or ()))


async def _read_lines(
    conversation: Conversation, view: PlainView, bridge: Bridge, *, is_terminal: bool
) -> None:
    also = BLOCKS if is_terminal else ()
    actions = CommandActions(conversation, _cannot_copy, also)
    block = _LineBlock(view)
    while True:
        line = await bridge.to_thread(_read_line)
        if is_terminal and line is not None:
            line = block.take(line)
        is_over = line is None or line.rstrip() in LEAVING
        if not is_terminal and (is_over or actions.is_in_order(line or "")):
            # What a script says before a command is done before it.
            await conversation.outbox.wait_resting()
        if line is None or is_over:
            block.close()
            await conversation.outbox.wait_sent()
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
        if (self._is_second or not self._conversation.is_busy) and callable(self._before):
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
