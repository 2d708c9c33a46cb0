"""Everything that Keryx raises, named by who must act on it.

    KeryxError
      ModelMustActError         its text is shown to the model, which can do better
        UnknownToolError          no granted tool has that name
        InvalidArgumentsError     the arguments do not fit the tool's schema
        ToolFailedError           the tool says why it could not do its work
      UserMustActError          its text is shown to the person, and says what to do
        UnsupportedError          this machine or this version cannot do that
        HookFailedError           a hook of a person did not work; names it and says why
        StoreError                the log cannot be written or read; says why
          StoreDamagedError         the file is damaged; nothing of it was changed
          StoreTooNewError          a newer version of Keryx wrote it
          SessionDamagedError       one session cannot be read; the others can
        ModelError                the model gave no answer; carries a kind and a hint
      DeveloperMustActError     a program uses Keryx wrongly
        InvalidToolError          a function cannot be a tool as it is declared
        WrongThreadError          blocking here would stop the event loop that must answer
        ScopeClosedError          work was started in a scope that has been left
        KeyReusedError            the same key came with another command
        InvalidCommandError       a command has a field that does not fit; nothing was done
        InvalidFactError          a fact could not be read back; it was not written
        SessionDeletedError       the session that is watched was deleted
        SequenceError             events do not follow the log that they are for
      NobodyMustActError        the world is as it is; the outcome says so
        ToolCancelledError        the call was cancelled; carries the reason
        OutcomeUnknownError       the call was cancelled, but may go on elsewhere; says where
        DeadlineError             the time that the caller gave is over
        ThreadsExhaustedError     blocking tools hold every thread there may be
        WardenLostError           the process that children run under has died
        SpawnError                a child process could not be started
        FencedError               someone else owns the session now
        AlreadyEnteredError       the same command is in already
        AlreadyTakenError         someone else was first
        RecordChangedError        a record is not what it was when it was read

A tool raises `ToolFailedError` (or any other exception) to fail, and may let
`ToolCancelledError` pass. The text of an error always says what to do next.
"""

from __future__ import annotations

from typing import Literal

ErrorKind = Literal[
    "rate_limit",
    "auth",
    "quota",
    "context_too_long",
    "model_not_found",
    "not_configured",
    "unreachable",
    "stalled",
    "bad_response",
    "limit",
    "store",
    "internal",
]
"""Why a model gave no answer, or a turn ended without one."""


class KeryxError(Exception):
    """The root of all errors that Keryx raises on purpose."""


class ModelMustActError(KeryxError):
    """Shown to the model as the result of its call."""


class UnknownToolError(ModelMustActError):
    """No granted tool has that name."""


class InvalidArgumentsError(ModelMustActError):
    """The arguments do not fit the tool's schema."""


class ToolFailedError(ModelMustActError):
    """Raised by a tool that cannot do its work; the model reads the text."""


class UserMustActError(KeryxError):
    """Shown to the person, with what to do."""


class UnsupportedError(UserMustActError):
    """This machine or this version cannot do what was asked."""


class HookFailedError(UserMustActError):
    """A hook did not work; the text says why, without the hook's name."""


class StoreError(UserMustActError):
    """The log cannot be written or read."""


class StoreDamagedError(StoreError):
    """The file is damaged. It is named, and nothing of it was changed."""


class StoreTooNewError(StoreError):
    """A newer version of Keryx wrote the file."""


class SessionDamagedError(StoreError):
    """The log of one session cannot be read. The other sessions are not concerned."""


class ModelError(UserMustActError):
    """The model gave no answer."""

    def __init__(
        self, kind: ErrorKind, message: str, hint: str, *, retry_after: float | None = None
    ) -> None:
        super().__init__(f"{message} ({hint})" if hint else message)
        self.kind: ErrorKind = kind
        self.message = message
        self.hint = hint
        self.retry_after = retry_after


class DeveloperMustActError(KeryxError):
    """A program uses Keryx in a way that cannot work."""


class InvalidToolError(DeveloperMustActError):
    """A function cannot be a tool as it is declared."""


class WrongThreadError(DeveloperMustActError):
    """Blocking here would stop the event loop that has to answer."""


class ScopeClosedError(DeveloperMustActError):
    """Work was started in a scope that has been left."""


class KeyReusedError(DeveloperMustActError):
    """The same key came with another command."""


class InvalidCommandError(DeveloperMustActError):
    """A command has a field of the wrong type or value; nothing was done."""


class InvalidFactError(DeveloperMustActError):
    """A fact could not be read back from the log, so it was not written."""


class SessionDeletedError(DeveloperMustActError):
    """The session was deleted; its watchers get no more events."""


class SequenceError(DeveloperMustActError):
    """Events do not follow the log that they are for."""


class NobodyMustActError(KeryxError):
    """A fact about the world that the outcome of a call reports."""


class ToolCancelledError(NobodyMustActError):
    """The call that asks was cancelled, or is over and may act no more."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"cancelled: {reason}")
        self.reason = reason


class OutcomeUnknownError(NobodyMustActError):
    """Raised by a tool that was cancelled after it gave its work to something that it cannot stop.

    The outcome of its call is `unknown`, and the model reads the text.
    """


class DeadlineError(NobodyMustActError):
    """The time that the caller gave is over."""


class ThreadsExhaustedError(NobodyMustActError):
    """Blocking tools use all threads: left over, or waiting for other threads."""


class WardenLostError(NobodyMustActError):
    """The process that runs all children has died; their ends are unknown."""


class SpawnError(NobodyMustActError):
    """A child process could not be started."""


class FencedError(NobodyMustActError):
    """Someone else owns the session now; nothing was written."""


class AlreadyEnteredError(NobodyMustActError):
    """The same command with the same key was entered before."""


class AlreadyTakenError(NobodyMustActError):
    """Someone else was first to take a name that can be taken only once."""


class RecordChangedError(NobodyMustActError):
    """A record is not what it was when it was read."""
