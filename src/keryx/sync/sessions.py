"""A session and a turn, blocking: for those who talk to them and wait for them."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, overload

from keryx import app
from keryx import commands as cm
from keryx import events as ev
from keryx.app.handles import BY
from keryx.messages import Decision, File, Image, Reach, Reason
from keryx.ports.dispatch import Answer
from keryx.ports.view import SessionView
from keryx.sync.caller import Caller


class Session:
    """One session, for those who talk to it."""

    def __init__(self, call: Caller, handle: app.SessionHandle) -> None:
        self._call = call
        self._handle = handle
        self.session_id = handle.session_id

    def send(
        self,
        text: str,
        *,
        key: str | None = None,
        schema: str | None = None,
        attended: bool = False,
        attachments: Sequence[Image | File] = (),
        workspace: str | None = None,
    ) -> Turn:
        """Say something; returns once the message is durable.

        The schema is the text of a JSON schema. The answer fits it and is in the result as `data`,
        or the turn fails (`bad_response`) after the model was told once. `attended` says that
        someone will `answer` what the turn asks; otherwise what would ask is denied.
        Attachments are uploaded before (`Keryx.upload`). No workspace means the session's.
        """
        turn = self._call(
            self._handle.send,
            text,
            key=key,
            schema=schema,
            attended=attended,
            attachments=attachments,
            workspace=workspace,
        )
        return Turn(self._call, turn)

    def steer(self, text: str, *, wait: bool = False, key: str | None = None) -> Turn:
        """Guide the running turn: now, or at the next boundary with `wait`."""
        return Turn(self._call, self._call(self._handle.steer, text, wait=wait, key=key))

    def interrupt(self, text: str, *, key: str | None = None) -> Turn:
        """End the running turn; this message is the next one."""
        return Turn(self._call, self._call(self._handle.interrupt, text, key=key))

    def answer(
        self,
        approval_id: str,
        decision: Decision,
        *,
        reach: Reach | None = None,
        by: str = BY,
    ) -> None:
        """Decide on a call that waits. The first answer wins; later ones: `AlreadyTakenError`.

        `reach` is one of the offers of the approval, for `session` and `always`; None: the first.
        """
        self._call(self._handle.answer, approval_id, decision, reach=reach, by=by)

    def answer_question(self, question_id: str, answer: str, *, by: str = BY) -> None:
        """Answer a question. The first answer wins; later ones: `AlreadyTakenError`."""
        self._call(self._handle.answer_question, question_id, answer, by=by)

    def run(
        self, tool: str, arguments: str = "{}", *, attended: bool = True
    ) -> Generator[ev.Event]:
        """Run a tool by hand, with no model: all that it says, until its `call.finished`.

        What its own calls ask comes too. `attended` says that someone will `answer` that; otherwise
        what would ask is denied.
        """
        return self._call.stream(self._handle.run(tool, arguments, attended=attended))

    def view(self) -> SessionView:
        """The session as it is now: its settings, its queue, what runs and what waits."""
        return self._call(self._handle.view)

    def change(self, **settings: Any) -> None:
        """Change its model, effort, workspace, tools, personality, title and the like."""
        self._call(lambda: self._handle.change(**settings))

    def fork(self, turn_id: str | None = None) -> Session:
        """A new session that shares this one's past up to the end of that turn; None: all of it."""
        return Session(self._call, self._call(self._handle.fork, turn_id))

    def compact(self) -> None:
        """Let a summary stand for what was said, in what the model is sent; the log keeps it all.

        Returns once that is done. `UserMustActError` if there is nothing to gain, `ModelError` if
        no model can do it.
        """
        self._call(self._handle.compact)

    def undo(self, turn_id: str, *, files: bool = True) -> None:
        """A turn leaves nothing in what the model reads, nor on the disk, unless `files` is false.

        `UserMustActError` if someone edited one of its files since.
        """
        self._call(self._handle.undo, turn_id, files=files)

    def diff(self) -> str:
        """All that the session changed on the disk, against what is there now."""
        return self._call(self._handle.diff)

    def revert(self, changes: Sequence[int]) -> None:
        """Take back changes of files, named by the `seq` of their `files.changed`: all or none."""
        self._call(self._handle.revert, changes)

    def tell(self, kind: type[cm.Command], *, by: str = BY, **fields: Any) -> Answer:
        """Give the session a command; returns once it is durable."""
        return self._call(lambda: self._handle.tell(kind, by=by, **fields))

    def events(self, after: int = 0) -> Generator[ev.Event]:
        """The log after that fact, then whatever comes, live events included."""
        return self._call.stream(self._handle.events(after))

    def follow(self, after: int = 0) -> Generator[ev.Event]:
        """The same, begun when this returns; whoever reads it closes it."""
        return self._call.stream(self._call(self._handle.follow, after))


class Turn:
    """One turn, for those who wait for it."""

    def __init__(self, call: Caller, handle: app.TurnHandle) -> None:
        self._call = call
        self._handle = handle
        self.turn_id = handle.turn_id

    def events(self) -> Generator[ev.Event]:
        """Everything that the turn says, until its one terminal fact."""
        return self._call.stream(self._handle.events())

    def result(self, *, timeout: float | None = None) -> app.TurnResult:
        """How it ended, once it has.

        `DeadlineError` if that takes longer than the timeout, in seconds; the turn goes on.
        """
        return self._call(self._handle.result, timeout=timeout)

    @overload
    def cancel(self, *, reason: Reason = "interrupt") -> app.TurnResult: ...
    @overload
    def cancel(self, *, call: str, reason: Reason = "interrupt") -> bool: ...
    def cancel(
        self, *, call: str | None = None, reason: Reason = "interrupt"
    ) -> app.TurnResult | bool:
        """End the turn, and say how it ended; or one call of it: False if that was over."""
        if call is None:
            return self._call(lambda: self._handle.cancel(reason=reason))
        return self._call(lambda: self._handle.cancel(call=call, reason=reason))
