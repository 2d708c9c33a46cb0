"""Decides what will be done about a message or a press. It changes nothing but conversations.

People who are not allowed get no plan, before anything of their message is looked at.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, Literal

from keryx.aio.clock import Clock
from keryx.app.host.socket_protocol import NewSession
from keryx.app.host_client import HostClient
from keryx.config import DEFAULT
from keryx.gateway import conversations
from keryx.gateway.inbox import WaitingUpdate
from keryx.gateway.people import Access
from keryx.gateway.talk import edits
from keryx.gateway.talk.commands.chat_commands import (
    HELP,
    NOT_PAIRED,
    ChatCommands,
    unused_words,
    with_note,
)
from keryx.gateway.talk.commands.stop_command import StopCommand
from keryx.gateway.talk.message_parts import says_something, text_of, without_command
from keryx.gateway.talk.plans import AnswerPlan, Plan, SayPlan, SendPlan, SwitchPlan
from keryx.gateway.talk.press_planner import PressPlanner
from keryx.ids import new_id
from keryx.messages import File, Image, Mode, well_formed
from keryx.ports.platform import (
    Address,
    Incoming,
    Person,
    Platform,
    Press,
    ReceivedFile,
    ReceivedMessage,
)
from keryx.ports.store import SessionRow
from keryx.ports.view import SessionView
from keryx.sqlite_file import SqliteFile

SessionsBy = Literal["chat", "topic", "person"]
_PAIRING: Final = ("pair", "start")


class Planner:
    """Plans for one platform."""

    def __init__(
        self,
        platform: Platform,
        host_client: HostClient,
        file: SqliteFile,
        access: Access,
        clock: Clock,
        *,
        sessions_by: SessionsBy,
        workspace: str,
    ) -> None:
        self._platform = platform
        self._host_client = host_client
        self._file = file
        self._access = access
        self._clock = clock
        self._sessions_by: SessionsBy = sessions_by
        self._workspace = workspace
        self._commands = ChatCommands(host_client, file)
        self._stop_command = StopCommand(
            platform,
            file,
            is_allowed=access.is_allowed,
            conversation_of=self.conversation,
            view_of=self.view_of,
        )
        self._presses = PressPlanner(platform.account, host_client, file)

    async def is_allowed(self, person: Person) -> bool:
        return await self._access.is_allowed(person)

    async def plan_press(self, press: Press) -> Plan:
        if not await self._access.is_allowed(press.person):
            return SayPlan()
        return await self._presses.plan(press)

    async def plan_message(  # noqa: PLR0911 (one for each command)
        self, rows: Sequence[WaitingUpdate], parts: Sequence[ReceivedMessage]
    ) -> Plan:
        """Plan for one message. `rows`: the updates that its parts came with."""
        message, key = parts[0], f"{self._platform.source}:{rows[0].key}"
        word, said = without_command(parts)
        if not await self._access.is_allowed(message.person):
            is_paired = word in _PAIRING and await self._access.pair(message.person, said[0].text)
            return SayPlan(text=HELP if is_paired else NOT_PAIRED)
        if not any(part.is_addressed for part in parts):
            return SayPlan()
        if message.is_edit:
            account = self._platform.account
            plan = await edits.planned(self._file, self._host_client, account, parts)
            if plan is not None:
                return plan
        conversation = self.conversation(message.address, message.person)
        match word:
            case "":
                return await self._send(key, said, mode="queue", may_answer=True)
            case "steer" | "queue" if says_something(said):
                return await self._send(key, said, mode=word)
            case "new":
                return await self._begin_new(key, said, conversation)
            case "stop":
                note = unused_words(word, said)
                return await self._stop_command.plan(rows, message, note=note)
            case _:
                plan = await self._commands.plan(
                    word,
                    said,
                    conversation,
                    partial(self._session, message.address, message.person),
                    partial(self.view_of, message.address, message.person),
                    person=self.session_person(message.address, message.person),
                    is_private=message.address.is_private,
                )
        return with_note(plan, unused_words(word, said))

    def conversation(self, address: Address, person: Person) -> str:
        """Return the key of the conversation that a message belongs to."""
        key = f"{self._platform.account}/{address.chat}"
        if self._sessions_by == "person":
            return f"{key}/person {person.id}"
        if self._sessions_by == "topic" and address.topic is not None:
            key = f"{key}/topic {address.topic}"
        # A private chat of Telegram has the id of its person; others may hold several people.
        is_shared = address.is_private and address.chat != person.id
        return f"{key}/person {person.id}" if is_shared else key

    def session_person(self, address: Address, person: Person) -> str | None:
        """Return for whom the session of such a message is; None: for the owner of the home."""
        by_person = self._sessions_by == "person"
        return self._access.session_person(address, person, by_person=by_person)

    async def is_for(self, session_id: str, address: Address, person: Person) -> bool:
        """Return whether a session is for who writes here. One that was deleted is for everybody.

        A session keeps its person, and the settings may say now that they are the owner.
        """
        row = await self._host_client.store.session(session_id)
        return row is None or row.person == self.session_person(address, person)

    async def own_session(self, session_id: str, incoming: Incoming) -> str:
        """Return this session, or that of the conversation if this one is not for who writes."""
        if await self.is_for(session_id, incoming.address, incoming.person):
            return session_id
        return await self._session(incoming.address, incoming.person)

    async def view_of(self, address: Address, person: Person) -> SessionView | None:
        """Return the state of the session of a conversation; None: it has none, and gets none."""
        row = await self._current(address, person)
        return None if row is None else await self._host_client.view(row.session_id)

    # -- messages

    async def _send(
        self, key: str, parts: Sequence[ReceivedMessage], *, mode: Mode, may_answer: bool = False
    ) -> Plan:
        """Plan to send a message. `may_answer`: it answers the question that is open, if one is."""
        message, text = parts[0], text_of(parts)
        if may_answer and text and not any(part.files for part in parts):
            question = await self._open_question(message.address, message.person)
            if question is not None:
                session_id, question_id = question
                return AnswerPlan(session_id=session_id, question_id=question_id, answer=text)
        session = partial(self._session, message.address, message.person)
        return await self._message(key, parts, session, mode)

    async def _begin_new(
        self, key: str, parts: Sequence[ReceivedMessage], conversation: str
    ) -> Plan:
        """Plan a new session. What is said with the command is its first message."""
        session_id, first = new_id("s"), None

        async def session() -> str:
            return session_id

        if says_something(parts):
            first = await self._message(key, parts, session, "queue")
            if not isinstance(first, SendPlan):
                return first
        return SwitchPlan(
            session_id=session_id, conversation=conversation, is_new=True, first=first
        )

    async def _message(
        self,
        key: str,
        parts: Sequence[ReceivedMessage],
        session: Callable[[], Awaitable[str]],
        mode: Mode,
    ) -> Plan:
        """Plan to send this to the session, or say why it is not sent; then none is created."""
        files = [file for part in parts for file in part.files]
        limit = self._platform.abilities.largest_download
        for file in files:
            if limit is not None and file.size is not None and file.size > limit:
                return SayPlan(
                    text=f"{file.name} is larger than {limit // 1024 // 1024} MB, which this "
                    "platform does not let me download; send a smaller file."
                )
        words = text_of(parts)
        if not words and not files:
            return SayPlan(text="I can read texts, photos, documents and voice messages only.")
        refusal = await self._access.refusal(parts[0].person)
        if refusal is not None:
            return SayPlan(text=refusal)
        attachments = [await self._attach(file) for file in files]
        return SendPlan(
            session_id=await session(),
            key=key,
            text=well_formed(words) or "(no text)",
            mode=mode,
            attachments=tuple(attachments),
        )

    async def _attach(self, file: ReceivedFile) -> Image | File:
        data = await self._platform.download(file)
        blob = await self._host_client.keep_upload(data)
        kind = Image if file.media_type.startswith("image/") else File
        return kind(blob, file.media_type, well_formed(file.name))

    async def _open_question(self, address: Address, person: Person) -> tuple[str, str] | None:
        """Return the session and the question that it asks in this conversation."""
        row = await self._current(address, person)
        if row is None or row.state != "waiting":
            return None
        view = await self._host_client.view(row.session_id)
        return (row.session_id, view.questions[0].question_id) if view.questions else None

    async def _current(self, address: Address, person: Person) -> SessionRow | None:
        """Return the session of a conversation, if it has one that is for who writes here."""
        conversation = self.conversation(address, person)
        session_id = await self._file.read(lambda con: conversations.current(con, conversation))
        row = None if session_id is None else await self._host_client.store.session(session_id)
        is_theirs = row is not None and row.person == self.session_person(address, person)
        return row if is_theirs else None

    async def _session(self, address: Address, person: Person) -> str:
        """Return the session of the conversation; create it if there is none, or none any more.

        One that is for somebody else is not used any more, as before people were kept apart.
        """
        conversation, at = self.conversation(address, person), self._clock.wall()
        session_id = await self._file.write(
            lambda con: conversations.session_of(con, conversation, at)
        )
        row = await self._host_client.store.session(session_id)
        if row is not None and row.person == self.session_person(address, person):
            return session_id
        # Other lanes of the conversation may do the same now: all of them get one session.
        session_id = await self._file.write(partial(_replace, conversation, session_id, at))
        await self.create(session_id, address, person)
        return session_id

    async def create(self, session_id: str, address: Address, person: Person) -> None:
        await self._host_client.open(
            NewSession(
                session_id=session_id,
                workspace=self._workspace,
                tools=await self._host_client.tools_for("gateway", DEFAULT),
                person=self.session_person(address, person),
            )
        )


def _replace(conversation: str, session_id: str, at: float, connection: sqlite3.Connection) -> str:
    return conversations.replace(connection, conversation, session_id, at)
