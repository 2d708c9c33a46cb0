"""Sends the requests of a turn to its model, and reads each reply until it ends or is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import msgspec

from keryx.aio.scope import Scope
from keryx.engine.context.prompt import system_text
from keryx.engine.session_context import SessionContext
from keryx.engine.steps.client_calls import client_specs
from keryx.engine.turns.streaming_reply import StreamingReply, read
from keryx.errors import ModelError
from keryx.messages import ToolChoice, TurnOptions
from keryx.ports.model import Model, ModelRequest, ToolSpec
from keryx.ports.tool import Tool


class Requests:
    """Sends the requests of one turn; their common parts are built once."""

    def __init__(
        self,
        context: SessionContext,
        prompt: Mapping[str, str],
        tools: Sequence[Tool],
        effort: str | None,
        options: TurnOptions,
    ) -> None:
        self._context = context
        self._system = "\n\n".join(filter(None, (system_text(prompt), options.instructions)))
        self._options = options
        self._client_specs = client_specs(options) if options.client_tools else ()
        self._tools = tools
        self._specs: tuple[int, tuple[ToolSpec, ...]] | None = None
        """The described tools, and how many were loaded when they were chosen."""
        self._effort = effort

    async def ask(
        self, model: Model, reply: StreamingReply, scope: Scope, schema: str | None
    ) -> ModelError | None:
        """Read the reply until it ends, fails, or the scope is cancelled."""
        context = self._context
        if attachments := context.transcript(model).new_attachments(context.fold):
            await context.files.prepare_attachments(attachments)
        if model.sees_images:
            await context.files.load_media(context.transcript(model).new_media(context.fold))
        if scope.is_cancelled:
            return None
        choice = self._tool_choice()
        request = ModelRequest(
            system=self._system,
            history=tuple(context.transcript(model).history(context.fold)),
            tools=self._described_tools(choice),
            tool_choice=choice,
            effort=self._effort,
            max_tokens=self._options.max_tokens,
            schema=None if schema is None else msgspec.json.decode(schema),
        )
        reading = read(reply, model, request, context.log.wait_durable)
        task = context.group.start(reading, name=reply.step_id)
        registration = scope.on_cancel(task.cancel)
        context.reply = reply.snapshot
        try:
            await asyncio.wait([task])
        finally:
            context.reply = None
            registration.remove()
        return None if task.cancelled() else task.result()

    def _tool_choice(self) -> ToolChoice | None:
        """Return which call the reply must make: that binds only the first reply of a turn."""
        turn, last_reply = self._context.fold.turn, self._context.fold.last_reply
        assert turn is not None
        is_first = last_reply is None or last_reply.turn_id != turn.turn_id
        return self._options.tool_choice if is_first else None

    def _described_tools(self, choice: ToolChoice | None) -> tuple[ToolSpec, ...]:
        """Return the tools as the model sees them; a call may have loaded more since last time.

        A model that must call any of the client's tools sees no others.
        """
        if choice is not None and not choice.name:
            return self._client_specs
        services, loaded = self._context.services, self._context.fold.loaded
        if self._specs is None or self._specs[0] != len(loaded):
            described = services.described(self._tools, loaded)
            specs = (*services.tool_specs.of(described), *self._client_specs)
            self._specs = (len(loaded), specs)
        return self._specs[1]
