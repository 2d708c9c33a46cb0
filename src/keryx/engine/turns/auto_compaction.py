"""Room for the next request of a turn: when what was said is summed up by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from keryx.aio.scope import Scope
from keryx.engine.context.window import expected
from keryx.engine.log.fold import Fold
from keryx.engine.operations.compaction import Compaction
from keryx.errors import ModelError, UserMustActError
from keryx.ports.model import Model

KEPT: Final = 0.25
"""The part of what was said that stays as it is, from its end: what is being worked on."""


class AutoCompaction:
    """Sees that what one turn sends fits into its model."""

    def __init__(
        self,
        fold: Fold,
        compaction: Compaction,
        scope: Scope,
        compact_at: Callable[[Model], float | None],
    ) -> None:
        self._fold = fold
        self._compact_at = compact_at
        self._compaction = compaction
        self._scope = scope
        self._is_vain = False
        """Whether a summary could not be had, or did not help: this turn goes on without."""
        self._is_squeezed = False
        """Whether all was summed up for the request under way."""

    def is_needed(self, model: Model) -> bool:
        """Whether the next request should be preceded by a summary."""
        enough = self._compact_at(model)
        if enough is None or self._is_vain or self._compaction.is_under_way:
            return False
        return expected(self._fold) >= enough

    async def make(self, model: Model) -> None:
        """Sum up all but the end; if that cannot be, the model itself will say that it is full."""
        enough = self._compact_at(model)
        if enough is None or not self.is_needed(model):
            return
        try:
            await self._compaction.run(self._scope, keep=KEPT)
        except (ModelError, UserMustActError):
            self._is_vain = True
            return
        self._is_vain = expected(self._fold) >= enough

    async def squeeze(self) -> bool:
        """The model found it too long: sum up all that can be. Whether it is worth asking again."""
        if self._is_squeezed:
            return False
        self._is_squeezed = True
        if self._compaction.is_under_way:
            await self._compaction.over(self._scope)
            return True
        try:
            await self._compaction.run(self._scope)
        except (ModelError, UserMustActError):
            return False
        return True

    def fitted(self) -> None:
        """A request was answered."""
        self._is_squeezed = False
