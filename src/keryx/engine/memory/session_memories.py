"""What the memory gave to a session, what its calls remember, and how far that can be trusted.

Computed from the log. A memory has the trust of the least trusted source that the model has read;
what a session read earlier stands in the requests of its later turns too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet
from typing import Final

import msgspec

from keryx import events as ev

OWN: Final = frozenset(("plan", "memory", "person"))
"""Resources that bring nothing from elsewhere: the plan, the memory, and who answers a question.

What a call finds in the memory is logged by itself: each memory has its own trust.
"""
FROM_WORKSPACE: Final = frozenset(("agents",))
"""Parts of the prompt that are files of the workspace, as a tool would read them: AGENTS.md."""


class SessionMemories(msgspec.Struct):
    """What the model was given from the memory, and what calls remembered."""

    in_context: set[str] = msgspec.field(default_factory=set[str])
    """Memories that the model has in its context."""
    remembered: set[str] = msgspec.field(default_factory=set[str])
    """Changes of the memory by calls that have not ended."""
    ended: set[str] = msgspec.field(default_factory=set[str])
    """Memories that calls of the running turn replaced or removed."""
    recalled: tuple[ev.RecalledMemory, ...] = ()
    """Memories for the message that is delivered next."""
    inherited: int = 0
    """The number of facts that a fork has from another session, which has remembered them."""
    trust: ev.Trust = "person"
    """The least trusted source that the model of the running turn has read."""
    turns_by_trust: dict[ev.Trust, set[str]] = msgspec.field(
        default_factory=dict[ev.Trust, set[str]]
    )
    """The turns that have ended and read more than a person's words, by their trust."""

    def start_turn(
        self, undone: AbstractSet[str], parts: Collection[str], *, is_child: bool
    ) -> None:
        """Start with the trust of what the turn sees; `undone`: turns that it does not see.

        `parts`: those of the prompt, which are logged before the turn starts. Nobody noted what the
        agent had read that wrote the task of a child.
        """
        self.trust = "page" if is_child else "person"
        for trust, turns in self.turns_by_trust.items():
            if not turns <= undone:  # ends at the first that is not undone, however many there are
                self.lower_trust(trust)
        if not FROM_WORKSPACE.isdisjoint(parts):
            self.lower_trust("tool")

    def lower_trust(self, source: ev.Trust) -> None:
        self.trust = least((self.trust, source))

    def recall(self, event: ev.MemoryRecalled) -> None:
        if isinstance(event.call_id, msgspec.UnsetType):
            self.recalled = event.memories
            self.in_context.update(memory.memory_id for memory in event.memories)
        for memory in event.memories:
            self.lower_trust(memory.trust)

    def remember(self, event: ev.MemoryChanged) -> None:
        self.remembered.add(event.memory_id)
        if event.target is not None and event.turn_id is not None:
            self.ended.add(event.target)

    def end_turn(self, turn_id: str) -> None:
        self.remembered.clear()
        self.ended.clear()
        if self.trust != "person":
            self.turns_by_trust.setdefault(self.trust, set()).add(turn_id)


def least(trusts: Iterable[ev.Trust]) -> ev.Trust:
    """Return the least trusted one of these; that of a person if there are none."""
    present = set(trusts)
    return "page" if "page" in present else "tool" if "tool" in present else "person"


def trust_of_call(effects: ev.CallEffects) -> ev.Trust:
    """Return the trust of what a call returns: files are a tool's output, all else may be a page.

    A call without effects, such as one that reads the web, does not say what it reads.
    """
    if effects.exclusive or not effects.accesses:
        return "page"
    sources = [name for name in effects.accesses if name.kind == "path" or name.name not in OWN]
    if any(source.kind != "path" for source in sources):
        return "page"
    return "tool" if sources else "person"
