"""The command /stop: it stops the turn that runs, or what was sent before it and has not begun.

It passes by what waits in its chat, so the messages before it may still be joined, downloaded or
sent. What it does is as if they had been sent: if a turn runs, this turn is stopped and the
messages behind it stay; if none runs, they are what is stopped. Which ones is decided in one
transaction with the answer, so nothing that was stopped comes back after a crash.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

import msgspec

from keryx.gateway import inbox
from keryx.gateway.inbox import WaitingUpdate
from keryx.gateway.talk import plans
from keryx.gateway.talk.message_parts import continues, says_something, without_command
from keryx.gateway.talk.plans import DropPlan, Plan, SayPlan, StopPlan
from keryx.ports.platform import Address, Person, Platform, ReceivedMessage
from keryx.ports.view import SessionView
from keryx.sqlite_file import SqliteFile

NOTHING: Final = "Nothing is running."
MOST_NAMED: Final = 10
LONGEST_NAME: Final = 60


class EarlierMessage(msgspec.Struct, frozen=True):
    """A message that came before the command: its updates, in one lane, and its parts."""

    rows: list[WaitingUpdate]
    parts: list[ReceivedMessage]


class StopCommand:
    """Plans for /stop on one platform."""

    def __init__(
        self,
        platform: Platform,
        file: SqliteFile,
        *,
        is_allowed: Callable[[Person], Awaitable[bool]],
        conversation_of: Callable[[Address, Person], str],
        view_of: Callable[[Address, Person], Awaitable[SessionView | None]],
    ) -> None:
        self._platform = platform
        self._file = file
        self._is_allowed = is_allowed
        self._conversation_of = conversation_of
        self._view_of = view_of

    async def plan(
        self, rows: Sequence[WaitingUpdate], message: ReceivedMessage, *, note: str
    ) -> Plan:
        """Plan the command, and store this plan. `note`: what else is to be said."""
        conversation = self._conversation_of(message.address, message.person)
        joined = tuple(row.place for row in rows)
        plan = None
        # Again, if one of the messages was sent meanwhile: then its turn is to be stopped.
        while plan is None:
            view = await self._view_of(message.address, message.person)
            turn_id = None if view is None else _turn_of(view)
            stop = None
            if view is not None and turn_id is not None:
                stop = StopPlan(session_id=view.session_id, turn_id=turn_id)
            messages = await self.earlier_messages(rows[0], message.address.chat, conversation)
            covered = _covered(messages, view if stop is not None else None)
            plan = await self._file.write(partial(_decide, joined, covered, stop, note))
        return plan

    async def earlier_messages(
        self, update: WaitingUpdate, chat: str, conversation: str
    ) -> list[EarlierMessage]:
        """Return the messages of the conversation that came before and are not handled."""
        source = self._platform.source
        rows = await self._file.read(lambda con: inbox.waiting_before(con, source, update, chat))
        messages: list[EarlierMessage] = []
        last: dict[str, EarlierMessage] = {}
        for row in rows:
            part = self._platform.read(row.body)
            if not isinstance(part, ReceivedMessage):
                continue
            if self._conversation_of(part.address, part.person) != conversation:
                continue
            if not await self._is_allowed(part.person):
                continue
            before = last.get(row.lane)
            if before is not None and continues(part, before.parts):
                before.rows.append(row)
                before.parts.append(part)
                continue
            last[row.lane] = EarlierMessage([row], [part])
            messages.append(last[row.lane])
        return [message for message in messages if any(p.is_addressed for p in message.parts)]


def _turn_of(view: SessionView) -> str | None:
    """Return the turn that runs, or that is about to begin."""
    if view.turn is not None:
        return view.turn.turn_id
    return view.queue[0].turn_id if view.queue else None


def _covered(messages: Sequence[EarlierMessage], view: SessionView | None) -> list[EarlierMessage]:
    """Return the messages that are stopped. `view`: of the session whose turn is stopped."""
    answers = 0 if view is None else len(view.questions)
    covered: list[EarlierMessage] = []
    is_running = view is not None
    for message in messages:
        word, parts = without_command(message.parts)
        is_answer = answers > 0 and not word and not any(part.files for part in parts)
        answers -= is_answer
        # The next messages go to another session, in which nothing runs.
        is_running = is_running and word != "new"
        belongs_to_turn = word == "steer" or is_answer
        is_sent = word in ("", "new", "queue", "steer") and says_something(parts)
        if is_sent and (belongs_to_turn or not is_running):
            covered.append(message)
    return covered


def _decide(
    joined: Sequence[int],
    covered: Sequence[EarlierMessage],
    stop: StopPlan | None,
    note: str,
    connection: sqlite3.Connection,
) -> Plan | None:
    """Store what becomes of the command and of the messages; None: one of them was handled."""
    states = [inbox.state_of(connection, message.rows[0].place) for message in covered]
    if any(state != "waiting" for state, _ in states):
        return None
    stopped: list[EarlierMessage] = []
    is_begun = False
    for message, (_, body) in zip(covered, states, strict=True):
        plan = None if body is None else plans.stopped(plans.decode(body))
        if body is not None and plan is None:
            continue  # it sends nothing, or is stopped already
        is_begun = is_begun or plan is not None
        stopped.append(message)
        for row in message.rows:
            if plan is None or row.place not in plan.joined:
                inbox.set_first_plan(connection, row.place, plans.encode(DropPlan()))
        if plan is not None:
            inbox.set_plan(connection, message.rows[0].place, plans.encode(plan))
    plan = _answer(stopped, stop, note, is_begun=is_begun)
    plan = msgspec.structs.replace(plan, joined=tuple(joined))
    inbox.set_plan(connection, joined[0], plans.encode(plan))
    return plan


def _answer(
    stopped: Sequence[EarlierMessage], stop: StopPlan | None, note: str, *, is_begun: bool
) -> StopPlan | SayPlan:
    names = ", ".join(_name(message.parts) for message in stopped[:MOST_NAMED])
    if len(stopped) > MOST_NAMED:
        names += f" and {len(stopped) - MOST_NAMED} more"
    if stop is not None:
        also = f"Stopped with it: {names}." if stopped else ""
        return msgspec.structs.replace(stop, note=f"{also}\n\n{note}".strip())
    text = NOTHING
    if stopped:
        text = f"Stopped: {names}." if is_begun else f"{NOTHING} Stopped before it began: {names}."
    return SayPlan(text=f"{text}\n\n{note}".strip())


def _name(parts: Sequence[ReceivedMessage]) -> str:
    """Return the beginning of a message, by which its author knows it."""
    for part in parts:
        words = " ".join(part.text.split()) or " ".join(part.quote.split())
        if words:
            return f"“{words[:LONGEST_NAME]}{'…' if len(words) > LONGEST_NAME else ''}”"
    return next((file.name for part in parts for file in part.files), "a message")
