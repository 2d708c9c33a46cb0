"""What the slash commands about the conversation do: sessions, turns, calls, messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from keryx import events as ev
from keryx.app.portable.conversation import undone_turns
from keryx.cli.chatting.commands.attachments import Attachments
from keryx.cli.chatting.commands.own_calls import OwnCalls
from keryx.cli.chatting.commands.request_actions import RequestActions
from keryx.cli.chatting.commands.setting_actions import SettingActions
from keryx.cli.chatting.commands.slash_commands import (
    help_text,
    number_in,
    parse,
    unknown,
)
from keryx.cli.chatting.conversation import Conversation
from keryx.cli.chatting.pieces import Piece, one_line, printable
from keryx.cli.chatting.requests import Choice, Request, choices_of
from keryx.dates import time_text
from keryx.errors import KeryxError, UserMustActError
from keryx.ports.view import QueuedMessage

MOST_SESSIONS: Final = 20
Action = Callable[[str], Awaitable[None]]


class CommandActions:
    """Runs what a person submits: a command, or a message."""

    def __init__(
        self,
        conversation: Conversation,
        copy: Callable[[str], str],
        others: Sequence[tuple[str, str]] = (),
    ) -> None:
        """`copy` puts a text into the clipboard, and returns what to say about it.

        `others` are commands that the view itself runs, for the help.
        """
        self._others = others
        self._conversation = conversation
        self._copy = copy
        self._listed: list[str] = []
        self.attachments = Attachments(conversation)
        settings = SettingActions(conversation)
        self._requests = RequestActions(conversation)
        self._own_calls = OwnCalls(conversation)
        # These must not wait for what was typed before: that is what they stop or answer.
        self._at_once: dict[str, Action] = {
            "steer": self._steer,
            "stop": self._stop,
            "cancel": self._cancel,
            "queue": self._queue,
            "help": self._help,
            "quit": self._quit,
            "exit": self._quit,
        }
        self._in_order: dict[str, Action] = {
            "new": self._new,
            "sessions": self._sessions,
            "resume": self._resume,
            "compact": self._compact,
            "fork": self._fork,
            "exec": self._own_calls.run_code,
            "undo": self._undo,
            "retry": self._retry,
            "attach": self.attachments.attach,
            "copy": self._copy_reply,
            "reasoning": self._reasoning,
            **settings.by_name,
        }

    def is_in_order(self, text: str) -> bool:
        """Return whether this is a command that acts on what was said before it."""
        command = parse(text)
        return command is not None and command[0] in self._in_order

    def submit(self, text: str) -> None:
        """Run a command, or send a message."""
        command = parse(text)
        if for_shell := self._own_calls.command_in(text):
            self._conversation.in_order(self._own_calls.run_command(for_shell))
            return
        if command is None:
            self._conversation.in_order(self._send(_without_mark(text)), is_message=True)
            return
        name, value = command
        if self._requests.takes(name):
            self._answer_shown(name, value)
        elif name in self._at_once:
            self._conversation.start(_run(self._at_once[name], value), name=name)
        elif name in self._in_order:
            if name == "attach":
                self.attachments.expect()
            work = _run(self._in_order[name], value)
            self._conversation.in_order(work, is_message=name == "retry")
        else:
            self._note(unknown(name))
            self._conversation.view.put_back(text)

    def _answer_shown(self, name: str, value: str) -> None:
        # The request is looked up now: the next one may come before a task begins.
        try:
            shown = self._conversation.shown_request
        except KeryxError as error:
            self._conversation.view.show([Piece("error", str(error))])
            self._conversation.view.put_back(value if name == "answer" else "")
            return
        self._conversation.start(self._requests.run(shown, name, value), name="answering")

    async def _send(self, message: str) -> None:
        # What was attached before is uploaded by now: this runs in order.
        await self.attachments.send_with(partial(self._conversation.send, message))

    def answer(self, request: Request, choice: Choice) -> None:
        """Answer the request that a person has seen."""
        self._conversation.start(self._conversation.answer(request, choice), name="answering")

    def choose(self, request: Request, key: str) -> None:
        """Answer the request with the choice that has this key, if there is one."""
        for choice in choices_of(request):
            if choice.key == key:
                self.answer(request, choice)

    def steer(self, text: str) -> None:
        """Steer with a message; a command is run as always."""
        if parse(text) is not None or self._own_calls.command_in(text):
            self.submit(text)
        else:
            self._steer_now(_without_mark(text))

    def _steer_now(self, message: str) -> None:
        """Steer at once; without a turn, or before a file is attached, after what came before."""
        if not self._conversation.transcript.is_running:
            self._conversation.in_order(self._send(message), is_message=True)
            return
        work = self.attachments.send_with(partial(self._conversation.steer, message))
        if self.attachments.is_complete:
            self._conversation.start(work, name="steering")
        else:
            self._conversation.in_order(work)

    def _note(self, text: str) -> None:
        self._conversation.view.show([Piece("note", text)])

    # -- sessions

    async def _help(self, _value: str) -> None:
        self._note(help_text(self._conversation.view.columns, self._others))

    async def _quit(self, _value: str) -> None:
        self._conversation.view.leave()

    async def _new(self, _value: str) -> None:
        self._conversation.forget()
        self._note("The next message starts a new session.")

    async def _sessions(self, words: str) -> None:
        store = self._conversation.app.store
        if words:
            hits = await store.search(words, limit=MOST_SESSIONS)
            ids = list(dict.fromkeys(hit.session_id for hit in hits))
            found_rows = [await store.session(session_id) for session_id in ids]
            rows = [row for row in found_rows if row is not None]
        else:
            rows = await store.sessions(limit=MOST_SESSIONS)
        self._listed = [row.session_id for row in rows]
        lines = [
            f"{number:>2}  {row.session_id}  {time_text(row.changed_at)}  {row.state:<7}  "
            f"{one_line(row.title, 60)}".rstrip()
            for number, row in enumerate(rows, 1)
        ]
        self._note("\n".join([*lines, "/resume NUMBER continues one"]) if lines else "No sessions.")

    async def _resume(self, word: str) -> None:
        store = self._conversation.app.store
        number = number_in(word)
        if number is not None and 1 <= number <= len(self._listed):
            word = self._listed[number - 1]
        if not word:
            current = self._conversation.session
            rows = await store.sessions(limit=2)
            ids = [
                r.session_id for r in rows if current is None or r.session_id != current.session_id
            ]
            if not ids:
                raise UserMustActError("there is no other session yet")
            word = ids[0]
        await self._conversation.resume(word)

    async def _fork(self, _value: str) -> None:
        session = self._conversation.existing
        fork = await session.fork()
        await self._conversation.resume(fork.session_id)
        self._note(f"This is a copy of {session.session_id}.")

    async def _compact(self, focus: str) -> None:
        session = self._conversation.existing
        self._note("Compacting…")
        await self._conversation.beside(session.compact(focus), name="the summary")

    async def _undo(self, _value: str) -> None:
        turn_id, _ = await self._last_turn()
        await self._conversation.existing.undo(turn_id)

    async def _retry(self, _value: str) -> None:
        turn_id, message = await self._last_turn()
        attachments = () if message is None else message.attachments
        text = "" if message is None else message.text
        await self._conversation.send(text, attachments, replaces=turn_id)

    async def _last_turn(self) -> tuple[str, ev.MessageAccepted | None]:
        """Return the last turn of the transcript, and its message."""
        session = self._conversation.existing
        log = await self._conversation.app.store.events(session.session_id)
        undone = undone_turns(log)
        turns = [event.turn_id for event in log if isinstance(event, ev.TurnFinished)]
        last = next((turn_id for turn_id in reversed(turns) if turn_id not in undone), None)
        if last is None:
            raise UserMustActError("There is no turn to undo.")
        messages = (e for e in log if isinstance(e, ev.MessageAccepted) and e.turn_id == last)
        return last, next(messages, None)

    # -- turns and calls

    async def _steer(self, text: str) -> None:
        if not text:
            raise UserMustActError("/steer needs a value: /steer TEXT")
        self._steer_now(text)

    async def _stop(self, number: str) -> None:
        await (self._cancel(number) if number else self._conversation.stop())

    async def _cancel(self, number: str) -> None:
        if (call := number_in(number)) is None:
            raise UserMustActError("/cancel needs the number of a running call: /cancel NUMBER")
        await self._conversation.stop_call(call)

    async def _queue(self, value: str) -> None:
        queue = list(self._conversation.transcript.queue.values())
        verb, _, number = value.partition(" ")
        if not value:
            lines = [f"{n}  {one_line(m.text, 80)}" for n, m in enumerate(queue, 1)]
            self._note("\n".join(["Queued messages", *lines]) if lines else "No queued messages.")
            return
        place = number_in(number.strip()) or 0
        if verb not in ("edit", "remove") or not 1 <= place <= len(queue):
            raise UserMustActError("/queue takes: edit NUMBER, remove NUMBER, or nothing")
        await self._withdraw(queue[place - 1], is_edited=verb == "edit")

    async def _withdraw(self, message: QueuedMessage, *, is_edited: bool) -> None:
        await self._conversation.withdraw(message.message_id)
        if is_edited:
            self.attachments.put_back(message.attachments)
            self._conversation.view.put_back(message.text)

    async def take_back(self) -> None:
        """Withdraw the last queued message and put it into the draft."""
        queue = list(self._conversation.transcript.queue.values())
        if queue:
            await self._withdraw(queue[-1], is_edited=True)

    # -- the last reply, and attachments

    async def _copy_reply(self, _value: str) -> None:
        text = self._conversation.transcript.last_reply
        if not text:
            raise UserMustActError("There is no reply to copy yet.")
        self._note(self._copy(text))

    async def _reasoning(self, _value: str) -> None:
        text = self._conversation.transcript.last_reasoning
        self._note(printable(text) or "The last reply has no reasoning.")


def _without_mark(text: str) -> str:
    """Return a message without what kept it from being a command."""
    return text[1:] if text.startswith(("//", " /", " !")) else text


async def _run(action: Action, value: str) -> None:
    await action(value)
