"""The commands of a chat that only look, or change a setting: /model, /status, /sessions, /help."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec

from keryx.app.host_client import HostClient
from keryx.gateway import conversations
from keryx.gateway.talk.plans import ModelPlan, Plan, SayPlan, SwitchPlan
from keryx.ports.platform import ReceivedMessage
from keryx.ports.store import SessionRow
from keryx.ports.view import SessionView
from keryx.sqlite_file import SqliteFile

CODE: Final = 4
"""So many characters from the end of a session's id stand for it."""
MOST_SESSIONS: Final = 8
TAKE_A_WORD: Final = ("model", "sessions")
NOT_PAIRED: Final = ""
"""A person who is not allowed gets nothing."""
HELP: Final = """\
You can talk to me now. Send a message, a photo, a document or a voice message.

/new begins a new session; /new TEXT says something in it
/stop stops what is running
/steer TEXT changes the course of what is running
/queue TEXT is done after what is running
/model NAME chooses the model; /model shows it
/status shows what is running
/sessions lists the last sessions; /sessions CODE goes on with one"""


def unused_words(word: str, parts: Sequence[ReceivedMessage]) -> str:
    """Return what to say about words and files that came with a command which has no use for them.

    `parts`: the message without the command.
    """
    is_used = word in TAKE_A_WORD or not parts[0].text
    if is_used and not _has_more(parts):
        return ""
    if word in ("pair", "start"):
        return "I know you already, so nothing else of this message was used."
    return f"Nothing behind /{word:.40} was sent to the agent; send it without the command."


def with_note(plan: Plan, note: str) -> Plan:
    """Return the plan of a command, which says this too."""
    if isinstance(plan, SayPlan):
        return msgspec.structs.replace(plan, text=f"{plan.text}\n\n{note}".strip())
    return plan


def _has_more(parts: Sequence[ReceivedMessage]) -> bool:
    """Return whether there is something else than the text of the first part."""
    return len(parts) > 1 or bool(parts[0].files)


class ChatCommands:
    """Plans for the commands that are not messages to the agent."""

    def __init__(self, host_client: HostClient, file: SqliteFile) -> None:
        self._host_client = host_client
        self._file = file

    async def plan(  # noqa: PLR0911 (one for each command)
        self,
        word: str,
        parts: Sequence[ReceivedMessage],
        conversation: str,
        session: Callable[[], Awaitable[str]],
        view: Callable[[], Awaitable[SessionView | None]],
        *,
        person: str | None,
        is_private: bool,
    ) -> Plan:
        """Plan a command. `session` returns the session of the conversation, a new one if needed.

        `person` is the one for whom the sessions of the conversation are; None: the owner.

        Commands that need no session must not call it, or each look would leave one behind: they
        use `view`, which returns the state of the session, if there is one.
        `parts`: the message without the command.
        """
        rest = parts[0].text
        if word in TAKE_A_WORD and rest and (len(rest.split()) > 1 or _has_more(parts)):
            return SayPlan(text=f"/{word} takes one word alone, so nothing is changed.")
        match word:
            case "status":
                return SayPlan(text=self._status(await view()))
            case "model" if rest:
                self._host_client.models.check(rest)
                return ModelPlan(session_id=await session(), model=rest)
            case "model":
                return SayPlan(text=f"The model is {self._model(await view())}.")
            case "sessions":
                return await self._sessions(rest, conversation, person or "", is_private=is_private)
            case "start" | "help" | "pair":
                return SayPlan(text=HELP)
            case "steer" | "queue":
                return SayPlan(text=f"Write the message behind the command: /{word} TEXT")
            case _:
                return SayPlan(text=f"There is no command /{word:.40}. /help lists all commands.")

    def _model(self, view: SessionView | None) -> str:
        """Return the model of a session, or the one that a new session would have."""
        return self._host_client.models.default if view is None else view.settings.model

    def _status(self, view: SessionView | None) -> str:
        if view is None:
            return f"Session: none yet\nModel: {self._model(None)}\nNothing is running."
        title = view.settings.title or view.session_id
        lines = [f"Session: {title}", f"Model: {self._model(view)}"]
        if view.turn is None:
            lines.append("Nothing is running.")
        else:
            running = ", ".join(call.tool for call in view.calls) or "the model"
            lines.append(f"Running: {running}. /stop stops it.")
        if view.approvals or view.questions:
            lines.append(f"Waiting for you: {len(view.approvals) + len(view.questions)}")
        if view.queue:
            lines.append(f"Queued messages: {len(view.queue)}")
        return "\n".join(lines)

    async def _sessions(
        self, rest: str, conversation: str, person: str, *, is_private: bool
    ) -> Plan:
        rows = await self._host_client.store.sessions(limit=200, person=person)
        if not is_private:
            # In a group, the sessions of other chats are nobody's business.
            own = await self._file.read(lambda con: conversations.sessions_of(con, conversation))
            rows = [row for row in rows if row.session_id in own]
        if rest:
            return _chosen(rest, rows, conversation)
        current = await self._file.read(lambda con: conversations.current(con, conversation))
        lines = [
            f"{row.session_id[-CODE:]} {row.title or row.session_id}"
            + (" (this one)" if row.session_id == current else "")
            for row in rows[:MOST_SESSIONS]
        ]
        text = "\n".join(lines) or "There are no sessions yet."
        return SayPlan(text=f"{text}\n\n/sessions CODE goes on with one of them.")


def _chosen(code: str, rows: Sequence[SessionRow], conversation: str) -> Plan:
    """Choose a session by the end of its id: a place in the list changes with every message."""
    matches = [row.session_id for row in rows if row.session_id.endswith(code.lower())]
    if len(code) < CODE or not matches:
        return SayPlan(text="There is no such session; /sessions lists the last ones.")
    if len(matches) > 1:
        return SayPlan(text=f"The ids of several sessions end so: {', '.join(matches)}")
    return SwitchPlan(session_id=matches[0], conversation=conversation)
