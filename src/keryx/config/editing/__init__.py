"""Changes `config.toml` and keeps what a person wrote there: comments, order and formatting."""

from __future__ import annotations

from keryx.config.editing.config_file import ConfigFile, revision_of
from keryx.config.editing.errors import CannotEditError, ChangedMeanwhileError
from keryx.config.editing.text_edits import Change, edited

__all__ = [
    "CannotEditError",
    "Change",
    "ChangedMeanwhileError",
    "ConfigFile",
    "edited",
    "revision_of",
]
