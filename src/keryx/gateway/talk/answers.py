"""Follows the turns that chats started, and writes what they say into the ledger.

The messages of a turn have keys that follow from its events. So a turn that is read again after a
crash, or from an earlier event, adds nothing twice. The end of a turn and its answer are one
transaction.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Sequence
from contextlib import aclosing
from functools import partial
from typing import Final, Literal

from keryx import events as ev
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.app.host_client import HostClient
from keryx.app.services.approval_rules import with_whole_arguments
from keryx.errors import DeveloperMustActError, KeryxError
from keryx.gateway import conversations, people
from keryx.gateway.conversations import AwaitedTurn
from keryx.gateway.delivery import ledger
from keryx.gateway.delivery.flood_gate import sleep
from keryx.gateway.delivery.ledger import NewMessage
from keryx.gateway.delivery.outbox import Outbox
from keryx.gateway.delivery.previews import Preview
from keryx.gateway.formatting.splitting import tail, with_line
from keryx.gateway.talk import requests
from keryx.gateway.talk.attached_files import AttachedFiles
from keryx.gateway.talk.turn_progress import TurnProgress, answer_messages, status_key
from keryx.ports.platform import Content, Platform
from keryx.sqlite_file import SqliteFile

Streaming = Literal["edits", "drafts", "off"]
WORKING: Final = "Working on it…"
DELETED: Final = "This session was deleted, so there is no answer."
LONGEST_PREVIEW: Final = 3500
# A session that cannot be read now can be read soon, unless it is damaged.
PAUSE: Final = 1.0
_log: Final = logging.getLogger("keryx.gateway")


class _Following:
    """One run through the events of a session."""

    def __init__(self, turns: dict[str, AwaitedTurn]) -> None:
        self.turns = turns
        self.seen = 0
        self.progress: dict[str, TurnProgress] = {}
        self.steps: dict[str, str] = {}
        self.task: asyncio.Task[None] | None = None


class Answers:
    """Belongs to one loop; `start` first, `close` last."""

    def __init__(
        self,
        platform: Platform,
        host_client: HostClient,
        file: SqliteFile,
        outbox: Outbox,
        scope: Scope,
        *,
        streaming: Streaming = "edits",
    ) -> None:
        self._platform = platform
        self._host_client = host_client
        self._file = file
        self._outbox = outbox
        self._clock = scope.clock
        self._group = Group(scope.child(f"answers {platform.name}"), on_error=_report)
        self._sessions: dict[str, _Following] = {}
        self._files = AttachedFiles(host_client)
        self._longest = platform.abilities.longest_text
        self._streaming: Streaming = streaming if platform.abilities.edits else "off"

    async def start(self) -> None:
        """Go on with the turns that an earlier process waited for."""
        account = self._platform.account
        for session_id in await self._file.read(
            lambda con: conversations.awaited_sessions(con, account)
        ):
            turns = await self._file.read(partial(_awaited, account, session_id))
            self._follow_from(session_id, _Following({turn.turn_id: turn for turn in turns}))

    def watch(self, turn: AwaitedTurn) -> None:
        """Follow this turn; it is in the table already."""
        following = self._sessions.get(turn.session_id)
        if following is None:
            self._follow_from(turn.session_id, _Following({turn.turn_id: turn}))
            return
        if turn.turn_id in following.turns:
            return
        following.turns[turn.turn_id] = turn
        if following.seen > turn.after:
            # Some of its events went by before it was known: read again, from the earliest turn.
            if following.task is not None:
                following.task.cancel()
            self._follow_from(turn.session_id, _Following(dict(following.turns)))

    async def close(self) -> None:
        await self._group.leave()
        self._group.scope.close()

    def _follow_from(self, session_id: str, following: _Following) -> None:
        self._sessions[session_id] = following
        following.task = self._group.start(
            self._follow(session_id, following), name=f"answers of {session_id}"
        )

    async def _follow(self, session_id: str, following: _Following) -> None:
        while following.turns:
            following.seen = min(turn.after for turn in following.turns.values())
            try:
                await self._read(session_id, following)
            except DeveloperMustActError as error:
                _log.info("the turns of %s have no answer: %s", session_id, error)
                await self._say_deleted(following)
            except KeryxError as error:
                _log.warning("the session %s cannot be followed: %s", session_id, error)
                await sleep(self._clock, PAUSE)
        if self._sessions.get(session_id) is following:
            del self._sessions[session_id]

    async def _read(self, session_id: str, following: _Following) -> None:
        stream = await self._host_client.follow(session_id, after=following.seen)
        async with aclosing(stream):
            async for event in stream:
                await self._handle(event, following)
                following.seen = max(following.seen, getattr(event, "seq", 0))
                if not following.turns:
                    return

    # -- events

    async def _handle(self, event: ev.Event, following: _Following) -> None:
        if isinstance(event, ev.StepStarted):
            following.steps[event.step_id] = event.turn_id
        turn_id = getattr(event, "turn_id", None) or following.steps.get(
            getattr(event, "step_id", "")
        )
        turn = following.turns.get(turn_id or "")
        if turn is None:
            return
        progress = following.progress.setdefault(turn.turn_id, TurnProgress())
        progress.note(event)
        match event:
            case ev.TurnStarted():
                await self._announce(turn)
            case ev.ApprovalAsked():
                whole_request = await with_whole_arguments(event, self._host_client.store)
                key = requests.approval_key(event.approval_id)
                contents = requests.approval_contents(whole_request, self._longest)
                await self._ask(turn, key, contents, progress)
            case ev.QuestionAsked():
                key = requests.question_key(event.question_id)
                contents = requests.question_contents(event, self._longest)
                await self._ask(turn, key, contents, progress)
            case ev.ApprovalAnswered() | ev.ApprovalExpired():
                key = requests.approval_key(event.approval_id)
                await self._settle(turn, key, requests.outcome_text(event), progress)
            case ev.QuestionAnswered() | ev.QuestionExpired():
                key = requests.question_key(event.question_id)
                await self._settle(turn, key, requests.outcome_text(event), progress)
            case ev.TurnFinished():
                await self._finish(turn, progress, event)
                following.turns.pop(turn.turn_id, None)
                following.progress.pop(turn.turn_id, None)
            case _:
                self._preview(turn, progress)

    async def _announce(self, turn: AwaitedTurn) -> None:
        """Say that the turn runs, with a button that stops it."""
        if self._shows_draft(turn):
            self._show(turn, WORKING)
        elif self._platform.abilities.edits:
            content = Content(text=WORKING, buttons=requests.stop_button(turn.turn_id))
            await self._enqueue(
                turn,
                [
                    NewMessage(
                        key=status_key(turn),
                        address=turn.address,
                        content=content,
                        action="status",
                        reply_to=turn.reply_to,
                    )
                ],
            )

    def _preview(self, turn: AwaitedTurn, progress: TurnProgress) -> None:
        if self._streaming != "off" and (text := progress.preview()):
            self._show(turn, tail(text, LONGEST_PREVIEW))

    def _show(self, turn: AwaitedTurn, text: str) -> None:
        """Show an answer so far: as a draft, which brings its Stop button along, or as an edit."""
        draft_id = requests.draft_id(turn.turn_id) if self._shows_draft(turn) else None
        content = Content(text=text, buttons=requests.stop_button(turn.turn_id))
        self._outbox.show(Preview(status_key(turn), turn.address, content, draft_id))

    def _shows_draft(self, turn: AwaitedTurn) -> bool:
        is_possible = self._platform.abilities.drafts and turn.address.is_private
        return self._streaming == "drafts" and is_possible

    async def _ask(
        self, turn: AwaitedTurn, key: str, contents: Sequence[Content], progress: TurnProgress
    ) -> None:
        """Ask a person. The last message has the buttons, and the key of the request."""
        last = len(contents) - 1
        progress.request_texts[key] = contents[last].text
        # The target names the turn that asks, so that a press finds the session.
        messages = [
            NewMessage(
                key=key if number == last else f"{key}:part:{number}",
                address=turn.address,
                content=content,
                target=turn.turn_id,
            )
            for number, content in enumerate(contents)
        ]
        await self._enqueue(turn, messages)

    async def _settle(
        self, turn: AwaitedTurn, key: str, outcome: str, progress: TurnProgress
    ) -> None:
        """Replace the buttons of a request by what came of it."""
        text = f"{progress.request_texts.get(key, '')}\n\n{outcome}".strip()
        message = NewMessage(
            key=f"{key}:end",
            address=turn.address,
            content=Content(text=text),
            action="edit",
            target=key,
        )
        if self._platform.abilities.edits:
            await self._enqueue(turn, [message])

    async def _finish(
        self, turn: AwaitedTurn, progress: TurnProgress, event: ev.TurnFinished
    ) -> None:
        text = progress.answer(event)
        attached = await self._files.of_turn(turn.session_id, text, progress.new_files)
        contents = with_line(self._platform.format(text), attached.not_sent, self._longest)
        messages = answer_messages(turn, contents, attached.files)
        self._outbox.drop_preview(turn.address, status_key(turn))
        tokens = event.usage.input_tokens + event.usage.output_tokens
        await self._enqueue(turn, messages, end=people.Spending(tokens=tokens))

    async def _enqueue(
        self,
        turn: AwaitedTurn,
        messages: Sequence[NewMessage],
        *,
        end: people.Spending | None = None,
    ) -> None:
        """Add messages to the ledger; `end`: the turn has ended and used this much."""
        account, at = self._platform.account, self._clock.wall()

        def write(connection: sqlite3.Connection) -> None:
            ledger.add(connection, account, messages, at)
            if end is not None and conversations.close_turn(connection, turn.turn_id):
                people.spend(connection, self._platform.name, turn.person, end, at)

        await self._file.write(write)
        self._outbox.wake(turn.address.chat)

    async def _say_deleted(self, following: _Following) -> None:
        """Say that the session was deleted: nobody will ever answer, and nothing runs."""
        for turn in list(following.turns.values()):
            self._outbox.drop_preview(turn.address, status_key(turn))
            messages = answer_messages(turn, [Content(text=DELETED)])
            await self._enqueue(turn, messages, end=people.Spending())
            following.turns.pop(turn.turn_id, None)


def _awaited(account: str, session_id: str, connection: sqlite3.Connection) -> list[AwaitedTurn]:
    return conversations.awaited_turns(connection, account, session_id)


def _report(name: str, error: BaseException) -> None:
    """Log an error of one session; the others go on."""
    _log.error("%s failed", name, exc_info=error)
