"""Asks the configured model to propose merges of memories, and says what that cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from keryx.app.models import Models
from keryx.engine.side_request import ask_for_text
from keryx.events import Usage
from keryx.messages import Text, UserMessage
from keryx.ports.memory import MemoryScope, profile_and_person
from keryx.ports.model import ModelRequest

if TYPE_CHECKING:
    from keryx.memory.changes.consolidation import Consolidation
    from keryx.memory.service import MemoryService

TIMEOUT: Final = 300.0


class ConsolidationReport(msgspec.Struct, frozen=True):
    """What became of the proposals, and which model made them; no name: none was asked."""

    result: Consolidation
    model: str
    usage: Usage
    cost: float | None
    """US dollars; None: unknown."""


async def consolidate(
    service: MemoryService, models: Models, scope: MemoryScope, name: str | None
) -> ConsolidationReport:
    """Ask the model of this name, or the one that is configured; `ModelError` if it fails."""
    profile, _ = profile_and_person(scope.profile)
    model = models.for_memory(profile, name)
    asked_model, usage, cost = "", Usage(), None

    async def ask(text: str) -> str:
        nonlocal asked_model, usage, cost
        message = model.encode(UserMessage((Text(text),)))
        request = ModelRequest(system="", history=(message,))
        answer, finished = await ask_for_text(model, request, timeout=TIMEOUT)
        asked_model, usage, cost = finished.model or model.name, finished.usage, finished.cost
        return answer

    result = await service.curation.consolidate(scope, ask)
    return ConsolidationReport(result, asked_model, usage, cost)
