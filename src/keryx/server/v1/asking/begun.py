"""What a request becomes: the settings of its agent, and the fact that its response begins with."""

from __future__ import annotations

import msgspec

from keryx.messages import Effort, TurnOptions


class Begun(msgspec.Struct, frozen=True):
    """The fact that a response begins with."""

    session_id: str
    seq: int
    turn_id: str


class AgentSettings(msgspec.Struct, frozen=True):
    """What the agent of a request works with."""

    model: str
    tools: tuple[str, ...]
    effort: Effort | None
    workspace: str
    names_workspace: bool
    """Whether the request names it; a session that goes on keeps its own otherwise."""


class TurnRequest(msgspec.Struct, frozen=True):
    """What a request wants of its turn, besides its messages."""

    settings: AgentSettings
    options: TurnOptions
    schema: str | None
    """The JSON schema of the answer, as text."""
