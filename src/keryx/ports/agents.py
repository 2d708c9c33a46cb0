"""The interface of child agents: sessions that a call of another session opens and waits for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from keryx.aio.scope import CancellationToken
from keryx.events import TurnOutcome, Usage


class ChildTask(msgspec.Struct, frozen=True, kw_only=True):
    """The task of one child agent. What is None is taken from its parent."""

    text: str
    title: str = ""
    model: str | None = None
    tools: tuple[str, ...] | None = None
    """Names of tools of the parent; a child never gets others."""
    workspace: str | None = None
    read_only: bool = False
    max_tokens: int | None = None
    """Input and output tokens after which the child is stopped."""


class ChildResult(msgspec.Struct, frozen=True, kw_only=True):
    """How the turn of a child agent ended."""

    session_id: str
    outcome: TurnOutcome
    text: str
    """The last reply of the child."""
    problem: str = ""
    """Why the turn did not complete."""
    model: str
    usage: Usage
    cost: float | None
    """None: a part of it is unknown."""
    steps: int
    calls: int


class Agents(Protocol):
    """Runs the child agents of one session."""

    async def run(
        self,
        call_id: str,
        task: ChildTask,
        token: CancellationToken,
        progress: Callable[[str], None],
    ) -> ChildResult:
        """Run one child agent until its turn ends; `progress` gets short notes.

        The call id identifies the child: after a restart, the same call waits for the same child.
        If the caller is cancelled, so is the child's turn, and this returns once it has ended. Only
        a `shutdown` of the token leaves the child alone: both go on at the next start.
        """
        ...
