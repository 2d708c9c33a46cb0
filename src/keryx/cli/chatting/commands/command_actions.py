"""What the slash commands about the conversation do: sessions, turns, calls, requests."""

from __future__ import annotations

import mimetypes
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

from keryx import events as ev
from keryx.app.portable.conversation import undone_turns
from keryx.cli.chatting.commands.clipboard_image import read_image
from keryx.cli.chatting.commands.setting_actions import SettingActions
from keryx.cli.chatting.commands.slash_commands import help_text, parse, unknown
from keryx.cli.chatting.conversation import Conversation
from keryx.cli.chatting.pieces import Piece, one_line, printable
from keryx.cli.chatting.requests import Choice, Request, choices_of
from keryx.errors import KeryxError, UserMustActError
from keryx.messages import Decision, File, Image
from keryx.ports.view import QueuedMessage

MOST_SESSIONS: Final = 20
LARGEST_ATTACHMENT: Final = 20_000_000
CLIPBOARD: Final = "clipboard.png"
LASTING: Final[dict[str, Decision]] = {"session": "session", "always": "always"}
Action = Callable[[str], Awaitable[None]]
R = TypeVar("R", ev.ApprovalAsked, ev.QuestionAsked)


class CommandActions:
    """Runs what a person submits: a command, or a message."""

    def __init__(self, conversation: Conversation, copy: Callable[[str], str]) -> None:
        """`copy` puts a text into the clipboard, and returns what to say about it."""
        self._conversation = conversation
        self._copy = copy
        self._listed: list[str] = []
        self.attachments: list[Image | File] = []
        settings = SettingActions(conversation)
        # These must not wait for what was typed before: that is what they stop or answer.
        self._at_once: dict[str, Action] = {
            "steer": self._steer,
            "stop": self._stop,
            "cancel": self._cancel,
            "allow": self._allow,
            "deny": self._deny,
            "answer": self._answer,
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
            "undo": self._undo,
            "retry": self._retry,
            "attach": self._attach,
            "copy": self._copy_reply,
            "reasoning": self._reasoning,
            **settings.by_name,
        }

    def submit(self, text: str) -> None:
        """Run a command, or send a message."""
        command = parse(text)
        if command is None:
            message = text[1:] if text.startswith(("//", " /")) else text
            self._conversation.in_order(self._send(message))
            return
        name, value = command
        if name.isdecimal():
            self._conversation.start(self._pick(int(name)), name="answering")
        elif name in self._at_once:
            self._conversation.start(_run(self._at_once[name], value), name=name)
        elif name in self._in_order:
            self._conversation.in_order(_run(self._in_order[name], value))
        else:
            self._note(unknown(name))
            self._conversation.view.put_back(text)

    async def _send(self, message: str) -> None:
        # What was attached before is uploaded by now: this runs in order.
        attachments, self.attachments = self.attachments, []
        try:
            await self._conversation.send(message, attachments)
        except KeryxError:
            self.attachments = [*attachments, *self.attachments]
            raise

    def answer(self, request: Request, choice: Choice) -> None:
        """Answer the request that a person has seen."""
        self._conversation.start(self._conversation.answer(request, choice), name="answering")

    def choose(self, request: Request, key: str) -> None:
        """Answer the request with the choice that has this key, if there is one."""
        for choice in choices_of(request):
            if choice.key == key:
                self.answer(request, choice)

    def steer(self, text: str) -> None:
        self._conversation.start(self._conversation.steer(text), name="steering")

    def _note(self, text: str) -> None:
        self._conversation.view.show([Piece("note", text)])

    # -- sessions

    async def _help(self, _value: str) -> None:
        self._note(help_text())

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
            f"{number:>2}  {row.session_id}  {_local_time(row.changed_at)}  {row.state:<7}  "
            f"{one_line(row.title, 60)}".rstrip()
            for number, row in enumerate(rows, 1)
        ]
        self._note("\n".join([*lines, "/resume NUMBER continues one"]) if lines else "No sessions.")

    async def _resume(self, word: str) -> None:
        store = self._conversation.app.store
        if word.isdecimal() and 1 <= int(word) <= len(self._listed):
            word = self._listed[int(word) - 1]
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
        session = await self._conversation.current()
        fork = await session.fork()
        await self._conversation.resume(fork.session_id)
        self._note(f"This is a copy of {session.session_id}.")

    async def _compact(self, focus: str) -> None:
        self._note("Compacting…")
        await (await self._conversation.current()).compact(focus)

    async def _undo(self, _value: str) -> None:
        turn_id, _ = await self._last_turn()
        await (await self._conversation.current()).undo(turn_id)

    async def _retry(self, _value: str) -> None:
        turn_id, message = await self._last_turn()
        attachments = () if message is None else message.attachments
        text = "" if message is None else message.text
        await self._conversation.send(text, attachments, replaces=turn_id)

    async def _last_turn(self) -> tuple[str, ev.MessageAccepted | None]:
        """Return the last turn of the transcript, and its message."""
        session = await self._conversation.current()
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
        await self._conversation.steer(text)

    async def _stop(self, number: str) -> None:
        await (self._cancel(number) if number else self._conversation.stop())

    async def _cancel(self, number: str) -> None:
        if not number.isdecimal():
            raise UserMustActError("/cancel needs the number of a running call: /cancel NUMBER")
        await self._conversation.stop_call(int(number))

    async def _queue(self, value: str) -> None:
        queue = list(self._conversation.transcript.queue.values())
        verb, _, number = value.partition(" ")
        if not value:
            lines = [f"{n}  {one_line(m.text, 80)}" for n, m in enumerate(queue, 1)]
            self._note("\n".join(["Queued messages", *lines]) if lines else "No queued messages.")
            return
        if not number.isdecimal() or not 1 <= int(number) <= len(queue):
            raise UserMustActError("/queue takes: edit NUMBER, remove NUMBER, or nothing")
        message: QueuedMessage = queue[int(number) - 1]
        await self._conversation.withdraw(message.message_id)
        if verb == "edit":
            self._conversation.view.put_back(message.text)

    async def take_back(self) -> None:
        """Withdraw the last queued message and put it into the draft."""
        queue = list(self._conversation.transcript.queue.values())
        if queue:
            await self._conversation.withdraw(queue[-1].message_id)
            self._conversation.view.put_back(queue[-1].text)

    # -- requests

    async def _pick(self, number: int) -> None:
        request = self._conversation.transcript.pending.first
        choices = [] if request is None else choices_of(request)
        if request is None:
            raise UserMustActError("Nothing is waiting for you.")
        if not 1 <= number <= len(choices):
            raise UserMustActError(f"there is no answer {number}; pick 1 to {len(choices)}")
        await self._conversation.answer(request, choices[number - 1])

    async def _allow(self, value: str) -> None:
        request = self._first(ev.ApprovalAsked)
        lasting, _, number = value.partition(" ")
        if lasting and lasting not in LASTING:
            raise UserMustActError("/allow takes: session, always, or nothing")
        reach = None
        if number:
            if not number.isdecimal() or not 1 <= int(number) <= len(request.offers):
                raise UserMustActError(f"there is no offer {number!r}")
            reach = request.offers[int(number) - 1].reach
        decision = LASTING.get(lasting, "once")
        await self._conversation.answer(request, Choice("", "", decision, reach=reach))

    async def _deny(self, _value: str) -> None:
        await self._conversation.answer(self._first(ev.ApprovalAsked), Choice("", "", "deny"))

    async def _answer(self, text: str) -> None:
        await self._conversation.answer(self._first(ev.QuestionAsked), Choice("", "", answer=text))

    def _first(self, kind: type[R]) -> R:
        for request in self._conversation.transcript.pending.requests.values():
            if isinstance(request, kind):
                return request
        raise UserMustActError("Nothing is waiting for you.")

    # -- the last reply, and attachments

    async def _copy_reply(self, _value: str) -> None:
        text = self._conversation.transcript.last_reply
        if not text:
            raise UserMustActError("There is no reply to copy yet.")
        self._note(self._copy(text))

    async def _reasoning(self, _value: str) -> None:
        text = self._conversation.transcript.last_reasoning
        self._note(printable(text) or "The last reply has no reasoning.")

    async def _attach(self, word: str) -> None:
        app = self._conversation.app
        file = Path(self._conversation.workspace) / Path(word).expanduser()  # noqa: ASYNC240 (no access)
        if word:
            data = await app.host_client.to_thread(lambda: _read(file))
        else:
            file = Path(CLIPBOARD)
            data = await read_image(app.host_client.config.environment)
        media_type = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        self.attachments.append(await app.upload(data, file.name, media_type))
        self._conversation.view.refresh()
        self._note(f"Attached {printable(file.name)} to the next message.")


async def _run(action: Action, value: str) -> None:
    await action(value)


def _read(file: Path) -> bytes:
    try:
        if file.stat().st_size > LARGEST_ATTACHMENT:
            raise UserMustActError(f"{file} is larger than 20 MB; attach a smaller file")
        return file.read_bytes()
    except OSError as error:
        raise UserMustActError(f"{file} was not attached: {error.strerror}") from error


def _local_time(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC).astimezone():%Y-%m-%d %H:%M}"
