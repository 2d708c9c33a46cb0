"""The parts of a turn that only some turns need, created on first use."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import msgspec

from keryx.engine.calls.call_environment import CallEnvironment
from keryx.engine.log.state import OpenTurn
from keryx.engine.session_context import SessionContext
from keryx.engine.steps.client_calls import client_tools
from keryx.engine.turns.answer_check import AnswerCheck
from keryx.engine.turns.model_request import Requests
from keryx.engine.turns.session_hooks import SessionHooks


class TurnParts:
    """The parts of one turn that are not always used."""

    def __init__(self, context: SessionContext, turn_id: str, prompt: Mapping[str, str]) -> None:
        self._context = context
        self._turn_id = turn_id
        self._prompt = prompt

    @cached_property
    def requests(self) -> Requests:
        turn = self._turn
        settings = turn.settings
        if settings.workspace != turn.workspace:
            settings = msgspec.structs.replace(settings, workspace=turn.workspace)
        own = {tool.name for tool in turn.options.client_tools}
        tools = [tool for tool in self._context.services.tools(settings) if tool.name not in own]
        return Requests(self._context, self._prompt, tools, settings.effort, turn.options)

    @cached_property
    def hooks(self) -> SessionHooks:
        return SessionHooks(self._context, self._turn_id)

    @cached_property
    def environment(self) -> CallEnvironment:
        workspace = Path(self._turn.workspace)
        environment = self._context.environment(self._turn.settings, workspace, self.hooks)
        if self._turn.options.client_tools:
            tools = client_tools(self._context, self._turn.options)
            environment.tools = {**environment.tools, **tools}
        return environment

    @cached_property
    def answer_check(self) -> AnswerCheck:
        context = self._context
        bridge = context.services.executor.bridge
        return AnswerCheck(context.fold, context.log, bridge, self._turn_id)

    @property
    def _turn(self) -> OpenTurn:
        turn = self._context.fold.turn
        assert turn is not None
        return turn
