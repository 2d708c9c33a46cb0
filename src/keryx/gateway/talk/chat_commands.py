"""The commands of a chat that only look, or change a setting: /model, /status, /sessions, /help."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from keryx.app.host_client import HostClient
from keryx.gateway import conversations
from keryx.gateway.talk.plans import ModelPlan, Plan, SayPlan, SwitchPlan
from keryx.ports.store import SessionRow
from keryx.sqlite_file import SqliteFile

CODE: Final = 4
"""So many characters from the end of a session's id stand for it."""
MOST_SESSIONS: Final = 8
NOT_PAIRED: Final = ""
"""A person who is not allowed gets nothing."""
HELP: Final = """\
You can talk to me now. Send a message, a photo, a document or a voice message.

/new begins a new session
/stop stops what is running
/steer TEXT changes the course of what is running
/queue TEXT is done after what is running
/model NAME chooses the model; /model shows it
/status shows what is running
/sessions lists the last sessions; /sessions CODE goes on with one"""


def command_in(text: str) -> tuple[str, str]:
    """Return the command of a message and the rest; no command: an empty word and the text."""
    if not text.startswith("/"):
        return "", text
    word, _, rest = text[1:].partition(" ")
    name, _, more = word.partition("\n")
    rest = f"{more}\n{rest}" if more else rest
    return name.lower(), rest.strip()


class ChatCommands:
    """Plans for the commands that are not messages to the agent."""

    def __init__(self, host_client: HostClient, file: SqliteFile) -> None:
        self._host_client = host_client
        self._file = file

    async def plan(  # noqa: PLR0911 (one for each command)
        self,
        word: str,
        rest: str,
        conversation: str,
        session: Callable[[], Awaitable[str]],
        *,
        is_private: bool,
    ) -> Plan:
        """Plan a command. `session` returns the session of the conversation, a new one if needed.

        Commands that need no session must not call it, or each look would leave one behind.
        """
        match word:
            case "status":
                return SayPlan(text=await self._status(await session()))
            case "model" if rest:
                self._host_client.models.check(rest)
                return ModelPlan(session_id=await session(), model=rest)
            case "model":
                view = await self._host_client.view(await session())
                return SayPlan(text=f"The model is {view.settings.model}.")
            case "sessions":
                return await self._sessions(rest, conversation, is_private=is_private)
            case "start" | "help" | "pair":
                return SayPlan(text=HELP)
            case "steer" | "queue":
                return SayPlan(text=f"Write the message behind the command: /{word} TEXT")
            case _:
                return SayPlan(text=f"There is no command /{word:.40}. /help lists all commands.")

    async def _status(self, session_id: str) -> str:
        view = await self._host_client.view(session_id)
        lines = [f"Session: {view.settings.title or session_id}", f"Model: {view.settings.model}"]
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

    async def _sessions(self, rest: str, conversation: str, *, is_private: bool) -> Plan:
        rows = await self._host_client.store.sessions(limit=200)
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
