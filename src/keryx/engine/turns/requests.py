"""What a turn asks its model: the request of a step, sent and read until it ends or is cut."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import msgspec

from keryx.aio.scope import Scope
from keryx.engine.context.prompt import system_text
from keryx.engine.desk import Desk
from keryx.engine.turns.draft import Draft, read
from keryx.errors import ModelError
from keryx.ports.model import Model, ModelRequest
from keryx.ports.tool import Tool


class Requests:
    """The requests of one turn: what they have in common is made once."""

    def __init__(
        self, desk: Desk, prompt: Mapping[str, str], tools: Sequence[Tool], effort: str | None
    ) -> None:
        self._desk = desk
        self._system = system_text(prompt)
        self._tools = desk.around.tool_specs.of(tools)
        self._effort = effort

    async def ask(
        self, model: Model, draft: Draft, scope: Scope, schema: str | None
    ) -> ModelError | None:
        """Stream the reply into the draft, until it ends, fails, or the scope is cancelled."""
        desk = self._desk
        await desk.prepare_attachments(model)
        if scope.is_cancelled:
            return None
        request = ModelRequest(
            system=self._system,
            history=tuple(desk.transcript(model).history(desk.fold)),
            tools=self._tools,
            effort=self._effort,
            schema=None if schema is None else msgspec.json.decode(schema),
        )
        reading = read(draft, model, request, desk.ledger.durable)
        asking = desk.group.start(reading, name=draft.step_id)
        cut = scope.on_cancel(asking.cancel)
        desk.draft = draft.snapshot
        try:
            await asyncio.wait([asking])
        finally:
            desk.draft = None
            cut.remove()
        return None if asking.cancelled() else asking.result()
