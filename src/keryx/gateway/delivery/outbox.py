"""Sends the messages of one account: one task for each chat, so that their order is kept.

An edit can be repeated until it is done. A send cannot: if its fate is unknown, it is repeated once
with a note that says so, and then counts as uncertain. A status message has no content that could
appear twice, so it is repeated without a note. A text whose formatting the platform refuses is sent
without it. Previews of an answer are not in the ledger: one that fails is dropped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from keryx.aio.clock import Clock
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.gateway.delivery import ledger
from keryx.gateway.delivery.flood_gate import DEFAULT_PACE, FloodGate, Pace, gate_of, sleep
from keryx.gateway.delivery.ledger import LedgerRow
from keryx.gateway.delivery.previews import ChatPreviews, Preview
from keryx.gateway.delivery.repetition import unformatted, with_note
from keryx.ports.platform import (
    Address,
    FateUnknownError,
    MessageRefusedError,
    NotSentError,
    Platform,
    PlatformError,
    Sending,
)
from keryx.sqlite_file import SqliteFile

MOST_UNKNOWN: Final = 2
"""Sends of unknown fate of one message: more copies would help nobody."""
# Seconds that requests under way get when the gateway ends; later their fate is unknown.
PATIENCE: Final = 3.0
_log: Final = logging.getLogger("keryx.gateway")


class _Chat:
    """What one chat waits for."""

    def __init__(self, gate: FloodGate, previews: ChatPreviews) -> None:
        self.gate = gate
        self.woken = asyncio.Event()
        self.is_running = False
        self.previews = previews


class Outbox:
    """Belongs to one loop; `start` first, `close` last."""

    def __init__(
        self,
        platform: Platform,
        file: SqliteFile,
        scope: Scope,
        *,
        read_blob: Callable[[str], Awaitable[bytes | None]],
        on_failure: Callable[[PlatformError], object],
        pace: Pace = DEFAULT_PACE,
    ) -> None:
        """`on_failure`: called when a person must act before the platform takes messages."""
        self._platform = platform
        self._file = file
        self._write = file.write
        self._clock: Clock = scope.clock
        self._group = Group(scope.child(f"outbox {platform.name}"), on_error=_report)
        self._read_blob = read_blob
        self._on_failure = on_failure
        self._pace = pace
        self._everywhere = FloodGate(pace.everywhere_interval, 30)
        self._chats: dict[str, _Chat] = {}
        self._in_flight = 0
        self._idle = asyncio.Event()
        self._is_closing = False

    async def start(self) -> None:
        """Go on with what an earlier process has not sent."""
        account, now = self._platform.account, self._clock.wall()
        for chat, until in await self._file.read(
            lambda con: ledger.closed_chats(con, account, now)
        ):
            self._state(chat).gate.close(self._clock.monotonic(), until - now)
        for chat in await self._file.read(lambda con: ledger.chats_waiting(con, account)):
            self.wake(chat)

    def wake(self, chat: str) -> None:
        """Send what the ledger has for this chat."""
        self._state(chat).woken.set()
        self._serve_soon(chat)

    def show(self, preview: Preview) -> None:
        """Show an answer so far, unless the ledger has something more important."""
        state = self._state(preview.address.chat)
        if state.previews.show(preview):
            state.woken.set()
        self._serve_soon(preview.address.chat)

    def drop_preview(self, address: Address, key: str) -> None:
        self._state(address.chat).previews.drop(key)
        self.wake(address.chat)

    def _state(self, chat: str) -> _Chat:
        state = self._chats.get(chat)
        if state is None:
            previews = ChatPreviews(self._pace.preview_interval)
            state = self._chats[chat] = _Chat(gate_of(chat, self._pace), previews)
        return state

    def _serve_soon(self, chat: str) -> None:
        state = self._state(chat)
        if not state.is_running and not self._is_closing:
            state.is_running = True
            self._group.start(self._serve(chat, state), name=f"send to {chat}")

    async def close(self) -> None:
        """Let requests under way end, for a bounded time."""
        self._is_closing = True
        if self._in_flight:
            self._idle.clear()
            timer = self._clock.call_at(self._clock.monotonic() + PATIENCE, self._idle.set)
            await self._idle.wait()
            timer.cancel()
        await self._group.leave()
        self._group.scope.close()

    # -- one chat

    async def _serve(self, chat: str, state: _Chat) -> None:
        try:
            while not self._is_closing:
                state.woken.clear()
                row = await self._file.read(
                    lambda con: ledger.first_waiting(con, self._platform.account, chat)
                )
                if row is not None:
                    await self._deliver(row, state)
                elif state.previews:
                    await self._show_next(state)
                elif not state.woken.is_set():
                    return
        finally:
            state.is_running = False

    async def _wait_gate(self, state: _Chat, not_before: float = 0.0) -> None:
        while True:
            now = self._clock.monotonic()
            pause = max(
                state.gate.delay(now),
                self._everywhere.delay(now),
                not_before - self._clock.wall(),
            )
            if pause <= 0:
                state.gate.count(now)
                self._everywhere.count(now)
                return
            await sleep(self._clock, pause)

    async def _show_next(self, state: _Chat) -> None:
        """Wait until the next preview is due, or until something else is to be done; show it."""
        pause = state.previews.delay(self._clock.monotonic())
        if pause > 0:
            timer = self._clock.call_at(self._clock.monotonic() + pause, state.woken.set)
            await state.woken.wait()
            timer.cancel()
            return
        for preview in state.previews.take(self._clock.monotonic()):
            await self._show(preview, state)

    async def _show(self, preview: Preview, state: _Chat) -> None:
        message_id = await self._file.read(lambda con: ledger.message_id(con, preview.key))
        if message_id is None and preview.draft_id is None:
            return
        await self._wait_gate(state)
        if not state.previews.is_current(preview):
            return
        sending = Sending(key=preview.key, address=preview.address, content=preview.content)
        try:
            if preview.draft_id is not None:
                await self._tracked(self._platform.show_draft(sending, preview.draft_id))
            else:
                await self._tracked(self._platform.edit(sending, message_id or ""))
        except NotSentError as error:
            await self._close_gate(preview.address.chat, error)
        except (FateUnknownError, MessageRefusedError, PlatformError) as error:
            _log.info("a preview was not shown: %s", error)

    # -- one message

    async def _deliver(self, row: LedgerRow, state: _Chat) -> None:
        if row.state == "sending" and not self._platform.abilities.sends_once:
            await self._repeat(row, "the gateway was ended while it sent this")
            return
        if row.action == "edit" and row.target_id is None:
            await self._write(lambda con: ledger.end(con, row.place, "dropped", "nothing to edit"))
            return
        is_edit = row.action in ("edit", "answer") and row.target_id is not None
        sending = await self._sending(row)
        if sending is None:
            await self._write(
                lambda con: ledger.end(con, row.place, "refused", "the file is not there any more")
            )
            return
        await self._wait_gate(state, row.retry_at)
        if self._is_closing:
            return
        begun = "editing" if is_edit else "sending"
        await self._write(lambda con: ledger.begin(con, row.place, begun))
        await self._attempt(row, sending, is_edit=is_edit)

    async def _sending(self, row: LedgerRow) -> Sending | None:
        data = None
        if row.content.file is not None:
            data = await self._read_blob(row.content.file.blob)
            if data is None:
                return None
        return Sending(
            key=row.key,
            address=row.address,
            content=row.content,
            reply_to=row.reply_to,
            data=data,
        )

    async def _attempt(self, row: LedgerRow, sending: Sending, *, is_edit: bool) -> None:
        try:
            if is_edit:
                assert row.target_id is not None
                await self._tracked(self._platform.edit(sending, row.target_id))
                message_id = row.target_id
            else:
                message_id = await self._tracked(self._platform.send(sending))
        except NotSentError as error:
            await self._close_gate(row.address.chat, error)
            await self._retry(row, error.retry_after, str(error))
        except FateUnknownError as error:
            if is_edit or self._platform.abilities.sends_once:
                await self._retry(row, None, str(error))
            else:
                await self._repeat(row, str(error))
        except MessageRefusedError as error:
            await self._refused(row, error, is_edit=is_edit)
        except PlatformError as error:
            self._on_failure(error)
            await self._retry(row, self._pace.longest_backoff, str(error))
        else:
            await self._write(lambda con: ledger.delivered(con, row.place, message_id))

    async def _close_gate(self, chat: str, error: NotSentError) -> None:
        if error.is_flood and error.retry_after is not None:
            self._state(chat).gate.close(self._clock.monotonic(), error.retry_after)
            account, until = self._platform.account, self._clock.wall() + error.retry_after
            await self._write(lambda con: ledger.close_chat(con, account, chat, until))

    async def _retry(self, row: LedgerRow, after: float | None, error: str) -> None:
        if after is None:
            after = self._pace.backoff_after(row.attempts)
        at = self._clock.wall() + after
        _log.info("the message %s is sent again in %.1f s: %s", row.key, after, error)
        await self._write(lambda con: ledger.retry(con, row.place, at, error))

    async def _repeat(self, row: LedgerRow, error: str) -> None:
        """Send a message of unknown fate once more, with a note, unless that was done already."""
        if row.unknown + 1 >= MOST_UNKNOWN:
            _log.warning("nobody knows whether the message %s arrived: %s", row.key, error)
            await self._write(lambda con: ledger.end(con, row.place, "uncertain", error))
            return
        content = row.content if row.action == "status" else with_note(row.content)
        await self._write(lambda con: ledger.repeat(con, row.place, content, error))

    async def _refused(self, row: LedgerRow, error: MessageRefusedError, *, is_edit: bool) -> None:
        if is_edit and error.is_gone and row.action == "answer":
            # Somebody deleted the status message: the answer becomes a message of its own.
            await self._write(lambda con: ledger.release(con, row.place))
            return
        plain = unformatted(row.content)
        if error.is_format and plain != row.content:
            await self._write(lambda con: ledger.reword(con, row.place, plain))
            return
        _log.warning("the platform refused the message %s: %s", row.key, error)
        await self._write(lambda con: ledger.end(con, row.place, "refused", str(error)))

    async def _tracked(self, request: Awaitable[str | None]) -> str:
        self._in_flight += 1
        try:
            return await request or ""
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._idle.set()


def _report(name: str, error: BaseException) -> None:
    """Log an error of one chat; the others go on."""
    _log.error("%s failed", name, exc_info=error)
