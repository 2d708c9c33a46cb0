"""Why a change of `config.toml` is refused."""

from __future__ import annotations

from collections.abc import Sequence

from keryx.errors import RecordChangedError, UserMustActError


class CannotEditError(UserMustActError):
    """The file is broken, or written in a way that a program cannot change."""


class ChangedMeanwhileError(RecordChangedError):
    """Somebody changed the same settings after they were read. Nothing was written."""

    def __init__(self, paths: Sequence[tuple[str, ...]]) -> None:
        names = ", ".join(".".join(path) for path in paths)
        super().__init__(
            f"{names} in config.toml changed after you read it; read the settings again, and decide"
        )
        self.paths = tuple(paths)
