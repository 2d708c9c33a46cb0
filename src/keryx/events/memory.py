"""The facts of a session about memory: what it remembered, and what it was given."""

from __future__ import annotations

from typing import Literal

import msgspec

from keryx.events.fields import InTurn, Logged

MemoryKind = Literal["fact", "conclusion"]
"""fact: something that was said or read. conclusion: something that the agent derived from it."""
MemoryAbout = Literal["user", "work"]
"""user: true in every workspace. work: about one workspace."""
Trust = Literal["person", "tool", "page"]
"""Where the words come from: a person, the output of a tool, or a text from the network.

Keryx sets it, never the text; of several sources, the least trusted one counts.
"""


class RecalledMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory as it is given to a model: data with its origin, never an instruction."""

    memory_id: str
    text: str
    trust: Trust
    provider: str
    session_id: str = ""
    """The session that it comes from; empty: a person added it outside of sessions."""
    at: float = 0.0


class MemoryChanged(Logged, frozen=True, kw_only=True, tag="memory.changed"):
    """A call changed the memory. It counts from this fact on, and is delivered to providers later.

    `target` is the memory that is replaced or removed. A removed memory has no text.
    """

    memory_id: str
    change: Literal["add", "replace", "remove"]
    call_id: str
    turn_id: str | None = None
    text: str = ""
    kind: MemoryKind = "fact"
    about: MemoryAbout = "user"
    trust: Trust = "tool"
    target: str | None = None
    profile: str = ""
    workspace: str = ""


class MemoryRecalled(InTurn, frozen=True, kw_only=True, tag="memory.recalled"):
    """The memories that the model is given with this turn's first message.

    `late`: providers that did not answer within the time that a turn waits for them. `call_id`: a
    call of the turn has found them instead; then only those are named that lower the turn's trust.
    """

    memories: tuple[RecalledMemory, ...] = ()
    late: tuple[str, ...] = ()
    waited: float = 0.0
    call_id: str | msgspec.UnsetType = msgspec.UNSET
