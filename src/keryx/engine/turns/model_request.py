"""What a turn asks its model: the request of a step, sent and read until it ends or is cut."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import msgspec

from keryx.aio.scope import Scope
from keryx.engine.context.prompt import system_text
from keryx.engine.session_context import SessionContext
from keryx.engine.turns.streaming_reply import StreamingReply, read
from keryx.errors import ModelError
from keryx.ports.model import Model, ModelRequest
from keryx.ports.tool import Tool


class Requests:
    """The requests of one turn: what they have in common is made once."""

    def __init__(
        self,
        context: SessionContext,
        prompt: Mapping[str, str],
        tools: Sequence[Tool],
        effort: str | None,
    ) -> None:
        self._context = context
        self._system = system_text(prompt)
        self._tools = context.services.tool_specs.of(tools)
        self._effort = effort

    async def ask(
        self, model: Model, reply: StreamingReply, scope: Scope, schema: str | None
    ) -> ModelError | None:
        """Stream the reply into the draft, until it ends, fails, or the scope is cancelled."""
        context = self._context
        await context.prepare_attachments(model)
        if scope.is_cancelled:
            return None
        request = ModelRequest(
            system=self._system,
            history=tuple(context.transcript(model).history(context.fold)),
            tools=self._tools,
            effort=self._effort,
            schema=None if schema is None else msgspec.json.decode(schema),
        )
        reading = read(reply, model, request, context.log.durable)
        asking = context.group.start(reading, name=reply.step_id)
        cut = scope.on_cancel(asking.cancel)
        context.reply = reply.snapshot
        try:
            await asyncio.wait([asking])
        finally:
            context.reply = None
            cut.remove()
        return None if asking.cancelled() else asking.result()
