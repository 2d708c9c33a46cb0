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
    """One session: sends it messages and commands, and reads its events."""

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
        replaces: str | None = None,
        revert: bool = False,
    ) -> Turn:
        """Send a message; returns once the message is durable.

        `schema` is the text of a JSON schema. The answer fits it and is in the result as `data`, or
        the turn fails (`bad_response`) after the model got one correction. `attended` says that
        someone will `answer` the approvals of the turn; otherwise calls that need one are denied.
        Upload attachments first (`Keryx.upload`). Without `workspace`, the session's is used.
        `replaces` names a turn that makes room for this one, with all turns after it; `revert`
        reverts their file changes, and `restore` brings them back.
        """
        turn = self._call(
            self._handle.send,
            text,
            key=key,
            schema=schema,
            attended=attended,
            attachments=attachments,
            workspace=workspace,
            replaces=replaces,
            revert=revert,
        )
        return Turn(self._call, turn)

    def steer(self, text: str, *, wait: bool = False, key: str | None = None) -> Turn:
        """Send a message to the running turn: now, or after the present step with `wait`."""
        return Turn(self._call, self._call(self._handle.steer, text, wait=wait, key=key))

    def interrupt(self, text: str, *, key: str | None = None) -> Turn:
        """Cancel the running turn; this message starts the next one."""
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
        """Run a tool without a model; yield its events until its `call.finished`.

        The approvals and questions of nested calls are included. `attended` says that someone will
        `answer` them; otherwise calls that need an approval are denied.
        """
        return self._call.stream(self._handle.run(tool, arguments, attended=attended))

    def view(self) -> SessionView:
        """Return the present state: settings, queue, running calls, open questions and so on."""
        return self._call(self._handle.view)

    def change(self, **settings: Any) -> None:
        """Change settings: model, effort, workspace, tools, personality, title and others."""
        self._call(lambda: self._handle.change(**settings))

    def fork(self, turn_id: str | None = None) -> Session:
        """Create a session with the history of this one up to the end of that turn; None: all."""
        return Session(self._call, self._call(self._handle.fork, turn_id))

    def compact(self, focus: str = "") -> None:
        """Replace the history that the model gets by a summary; the log keeps everything.

        The last turns stay as they are; `focus` is what the summary keeps above all. Returns when
        that is done. `UserMustActError` if a summary would save nothing, `ModelError` if no model
        can write it.
        """
        self._call(self._handle.compact, focus)

    def undo(self, turn_id: str, *, files: bool = True) -> None:
        """Remove a turn from the model's context, and revert its files unless `files` is false.

        `UserMustActError` if one of these files was edited since.
        """
        self._call(self._handle.undo, turn_id, files=files)

    def restore(self, turn_id: str) -> None:
        """Bring back a turn that another one replaced; not while a turn is running."""
        self._call(self._handle.restore, turn_id)

    def diff(self) -> str:
        """Return a diff of all files that the session changed, against their present content."""
        return self._call(self._handle.diff)

    def revert(self, changes: Sequence[int]) -> None:
        """Revert changes of files, given by the `seq` of their `files.changed`: all or none."""
        self._call(self._handle.revert, changes)

    def tell(self, kind: type[cm.Command], *, by: str = BY, **fields: Any) -> Answer:
        """Send the session a command; returns once it is durable."""
        return self._call(lambda: self._handle.tell(kind, by=by, **fields))

    def events(self, after: int = 0) -> Generator[ev.Event]:
        """Yield the logged events after that number, then each new event, live ones included."""
        return self._call.stream(self._handle.events(after))

    def follow(self, after: int = 0) -> Generator[ev.Event]:
        """Return the same stream, already started; the caller closes it."""
        return self._call.stream(self._call(self._handle.follow, after))


class Turn:
    """One turn: reads its events, waits for its result, cancels it."""

    def __init__(self, call: Caller, handle: app.TurnHandle) -> None:
        self._call = call
        self._handle = handle
        self.turn_id = handle.turn_id

    def events(self) -> Generator[ev.Event]:
        """Yield the events of the turn, until `turn.finished`."""
        return self._call.stream(self._handle.events())

    def result(self, *, timeout: float | None = None) -> app.TurnResult:
        """Wait for the end of the turn, and return how it ended.

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
        """Cancel the turn and return how it ended; or one call: False if it was over already."""
        if call is None:
            return self._call(lambda: self._handle.cancel(reason=reason))
        return self._call(lambda: self._handle.cancel(call=call, reason=reason))
