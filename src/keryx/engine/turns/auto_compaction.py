"""Automatic compaction: when a turn summarizes its history before a request."""

from __future__ import annotations

from collections.abc import Callable

from keryx.aio.scope import Scope
from keryx.engine.context.window import expected_tokens
from keryx.engine.log.fold import Fold
from keryx.engine.operations.compaction import KEEP, Compaction
from keryx.errors import ModelError, UserMustActError
from keryx.ports.model import Model


class AutoCompaction:
    """Keeps the requests of one turn within the window of its model."""

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
        self._is_useless = False
        """Whether a summary failed or did not help: this turn goes on without."""
        self._has_compacted_all = False
        """Whether everything was summarized for the current request."""

    def is_needed(self, model: Model) -> bool:
        """Return whether a summary is needed before the next request."""
        limit = self._compact_at(model)
        if limit is None or self._is_useless or self._compaction.is_running:
            return False
        return expected_tokens(self._fold) >= limit

    async def compact_if_needed(self, model: Model) -> None:
        """Summarize all but the end. If that fails, the model will report that it is full."""
        limit = self._compact_at(model)
        if limit is None or not self.is_needed(model):
            return
        try:
            await self._compaction.run(self._scope, keep=KEEP)
        except (ModelError, UserMustActError):
            self._is_useless = True
            return
        self._is_useless = expected_tokens(self._fold) >= limit

    async def compact_all(self) -> bool:
        """Summarize everything after a request was too long; return whether to ask again."""
        if self._has_compacted_all:
            return False
        self._has_compacted_all = True
        if self._compaction.is_running:
            await self._compaction.wait_over(self._scope)
            return True
        try:
            await self._compaction.run(self._scope)
        except (ModelError, UserMustActError):
            return False
        return True

    def note_reply(self) -> None:
        """Note that a request was answered."""
        self._has_compacted_all = False
