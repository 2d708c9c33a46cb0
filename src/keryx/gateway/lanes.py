"""Handles stored updates: one task for each lane, so that one slow chat holds up no other.

An update is planned, the plan is stored, then done; the reply and the end of the update are one
transaction. Whatever dies in between is repeated and takes effect once. An update that keeps
failing is kept as a dead letter, and its chat goes on.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import msgspec

from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.errors import KeryxError, NobodyMustActError, UserMustActError
from keryx.gateway import conversations, inbox, people
from keryx.gateway.delivery import ledger
from keryx.gateway.delivery.flood_gate import Pace, sleep
from keryx.gateway.delivery.ledger import NewMessage
from keryx.gateway.delivery.outbox import Outbox
from keryx.gateway.inbox import WaitingUpdate
from keryx.gateway.talk import edits, plans
from keryx.gateway.talk.answers import Answers
from keryx.gateway.talk.message_parts import continues
from keryx.gateway.talk.performer import Performed, Performer, reply_messages
from keryx.gateway.talk.planner import Planner
from keryx.gateway.talk.plans import Plan, SayPlan
from keryx.ports.platform import (
    Incoming,
    MessageRefusedError,
    NotSentError,
    Platform,
    Press,
    ReceivedMessage,
    Update,
)
from keryx.sqlite_file import SqliteFile

MOST_ATTEMPTS: Final = 6
MOST_PARTS: Final = 100
_log: Final = logging.getLogger("keryx.gateway")


class Lanes:
    """The updates of one platform. Belongs to one loop; `start` first, `close` last."""

    def __init__(
        self,
        platform: Platform,
        file: SqliteFile,
        scope: Scope,
        *,
        planner: Planner,
        performer: Performer,
        answers: Answers,
        outbox: Outbox,
        pace: Pace,
        join_window: float,
    ) -> None:
        """`join_window`: seconds in which the parts of one message come."""
        self._platform = platform
        self._file = file
        self._clock = scope.clock
        self._group = Group(scope.child(f"lanes {platform.name}"), on_error=_report)
        self._planner = planner
        self._performer = performer
        self._answers = answers
        self._outbox = outbox
        self._pace = pace
        self._join_window = join_window
        self._woken: dict[str, bool] = {}
        """The lanes that have a task, and whether new updates came since it looked."""

    async def take(self, updates: Sequence[Update]) -> None:
        """Store updates; they are durable when this returns."""
        source, at = self._platform.source, self._clock.wall()
        lanes = await self._file.write(lambda con: inbox.store(con, source, updates, at))
        for lane in lanes:
            self._wake(lane)

    async def start(self) -> None:
        """Go on with what an earlier process has not handled."""
        source = self._platform.source
        for lane in await self._file.read(lambda con: inbox.lanes_waiting(con, source)):
            self._wake(lane)

    async def close(self) -> None:
        await self._group.leave()
        self._group.scope.close()

    def _wake(self, lane: str) -> None:
        if lane in self._woken:
            self._woken[lane] = True
        elif not self._group.scope.is_cancelled:
            self._woken[lane] = False
            self._group.start(self._serve(lane), name=f"lane {lane}")

    async def _serve(self, lane: str) -> None:
        try:
            while True:
                self._woken[lane] = False
                rows = await self._waiting(lane, 1)
                if rows:
                    await self._try(rows[0])
                elif not self._woken[lane]:
                    return
        finally:
            del self._woken[lane]

    async def _waiting(self, lane: str, limit: int) -> list[WaitingUpdate]:
        source = self._platform.source
        return await self._file.read(lambda con: inbox.waiting(con, source, lane, limit))

    # -- one update

    async def _try(self, update: WaitingUpdate) -> None:
        try:
            await self._handle(update)
        except (UserMustActError, MessageRefusedError) as error:
            await self._refuse(update, str(error))
        except NobodyMustActError as error:
            await self._fail(update, error)
        except Exception as error:  # noqa: BLE001 (whatever it is, it must not stop the lane)
            _log.exception("the update %s failed", update.key)
            await self._fail(update, error)

    async def _handle(self, update: WaitingUpdate) -> None:
        incoming = self._platform.read(update.body)
        if incoming is None:
            await self._finish(None, Performed(), [update], update.plan)
            return
        body, rows = update.plan, [update]
        plan = None if body is None else plans.decode(body)
        if plan is None:
            plan, rows = await self._plan(update, incoming)
            new_body = plans.encode(plan)
            body = await self._file.write(
                lambda con: inbox.set_first_plan(con, update.place, new_body)
            )
            if body != new_body:  # somebody has stopped it meanwhile
                plan, rows = plans.decode(body), [update]
        elif plan.joined:
            waiting = await self._waiting(update.lane, MOST_PARTS)
            rows = [row for row in waiting if row.place in plan.joined]
        performed = await self._performer.perform(plan, incoming)
        # An empty plan is for what was not meant for the bot.
        is_taken = not isinstance(plan, SayPlan) or bool(plan.text)
        await self._finish(incoming, performed, rows, body, is_taken=is_taken)

    async def _plan(
        self, update: WaitingUpdate, incoming: Incoming
    ) -> tuple[Plan, list[WaitingUpdate]]:
        if isinstance(incoming, Press):
            return await self._planner.plan_press(incoming), [update]
        if not await self._planner.is_allowed(incoming.person):
            # A stranger must not hold up their group by messages that seem to have more parts.
            return await self._planner.plan_message([update], [incoming]), [update]
        rows, parts = await self._parts(update, incoming)
        while parts[-1].is_part and len(parts) < MOST_PARTS:
            await sleep(self._clock, self._join_window)
            count = len(parts)
            rows, parts = await self._parts(update, incoming)
            if len(parts) == count:
                break
        plan = await self._planner.plan_message(rows, parts)
        places = tuple(row.place for row in rows)
        return msgspec.structs.replace(plan, joined=places), rows

    async def _parts(
        self, update: WaitingUpdate, first: ReceivedMessage
    ) -> tuple[list[WaitingUpdate], list[ReceivedMessage]]:
        """Return the messages that are one: an album, a text in pieces, forwarded ones."""
        rows, parts = [update], [first]
        for row in (await self._waiting(update.lane, MOST_PARTS))[1:]:
            part = self._platform.read(row.body)
            if not isinstance(part, ReceivedMessage) or not continues(part, parts):
                break
            rows.append(row)
            parts.append(part)
        return rows, parts

    async def _finish(
        self,
        incoming: Incoming | None,
        performed: Performed,
        rows: Sequence[WaitingUpdate],
        plan: bytes | None,
        *,
        is_taken: bool = False,
    ) -> None:
        """End updates that were handled as one, in one transaction.

        If their `plan` was changed meanwhile, they do not end: the new one is done first.
        """
        messages = [] if incoming is None else self._replies(rows[0], incoming, performed.text)
        account, at = self._platform.account, self._clock.wall()
        parts = [self._platform.read(row.body) for row in rows if is_taken]

        def write(connection: sqlite3.Connection) -> bool:
            if inbox.state_of(connection, rows[0].place)[1] != plan:
                return False
            inbox.finish(connection, [row.place for row in rows])
            ledger.add(connection, account, messages, at)
            self._remember(connection, parts, performed, at)
            if performed.turn is not None:
                conversations.await_turn(connection, account, performed.turn)
            return True

        if not await self._file.write(write):
            return
        if performed.turn is not None:
            self._answers.watch(performed.turn)
        for message in messages:
            self._outbox.wake(message.address.chat)
        if isinstance(incoming, Press):
            await self._platform.settle(incoming, performed.text)

    def _remember(
        self,
        connection: sqlite3.Connection,
        parts: Sequence[Incoming | None],
        performed: Performed,
        at: float,
    ) -> None:
        """Remember messages, because people may change them, and count a turn."""
        turn, queued = performed.turn, None
        if turn is not None:
            used = people.Spending(turns=1)
            people.spend(connection, self._platform.name, turn.person, used, at)
            if performed.queued_id is not None:
                queued = (turn.session_id, performed.queued_id)
        messages = [part for part in parts if isinstance(part, ReceivedMessage)]
        if messages and messages[0].is_edit and turn is None:
            edits.remember_change(connection, self._platform.account, messages[0])
        else:
            edits.remember(connection, self._platform.account, messages, queued, at)

    def _replies(self, update: WaitingUpdate, incoming: Incoming, text: str) -> list[NewMessage]:
        key = f"{self._platform.source}:{update.key}"
        return reply_messages(key, incoming, text, self._platform.abilities.longest_text)

    # -- failures

    async def _refuse(self, update: WaitingUpdate, error: str) -> None:
        """Tell the person why their message has no effect."""
        incoming = self._platform.read(update.body)
        if incoming is not None and not await self._planner.is_allowed(incoming.person):
            incoming = None
        failed = Performed(f"It failed: {error}")
        is_taken = incoming is not None
        await self._finish(incoming, failed, [update], update.plan, is_taken=is_taken)

    async def _fail(self, update: WaitingUpdate, error: Exception) -> None:
        if isinstance(error, NotSentError) and error.retry_after is not None:
            # The platform asks to wait; that is no fault of the update.
            await sleep(self._clock, error.retry_after)
            return
        if update.attempts + 1 >= MOST_ATTEMPTS:
            _log.error("the update %s is given up: %s", update.key, _described(error))
            await self._give_up(update, error)
            return
        text = _described(error)
        await self._file.write(lambda con: inbox.count_failure(con, update.place, text))
        await sleep(self._clock, self._pace.backoff * 2.0**update.attempts)

    async def _give_up(self, update: WaitingUpdate, error: Exception) -> None:
        """Keep the update as a dead letter, and tell the person, in one transaction."""
        messages: list[NewMessage] = []
        with suppress(Exception):  # whatever it is, it must not stop the lane
            incoming = self._platform.read(update.body)
            if incoming is not None and await self._planner.is_allowed(incoming.person):
                text = f"I could not take this message: {_described(error)}"
                messages = self._replies(update, incoming, text)
        account, at = self._platform.account, self._clock.wall()

        def write(connection: sqlite3.Connection) -> None:
            inbox.give_up(connection, update.place, _described(error))
            ledger.add(connection, account, messages, at)

        await self._file.write(write)
        for message in messages:
            self._outbox.wake(message.address.chat)


def _described(error: Exception) -> str:
    """Return the text of our own errors; others may hold anything, such as a token."""
    if isinstance(error, KeryxError):
        return str(error)
    return f"a fault in Keryx ({type(error).__name__})"


def _report(name: str, error: BaseException) -> None:
    """Log an error of one lane; the others go on."""
    _log.error("%s failed", name, exc_info=error)
