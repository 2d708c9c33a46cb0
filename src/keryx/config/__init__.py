"""Reads and keeps the configuration: files, environment variables, choices made on the page."""

from __future__ import annotations

from keryx.config.homes import user_home
from keryx.config.keys import change_key, keep_key, keep_model, remove_key
from keryx.config.providers import OPENAI_URL, Provider
from keryx.config.reading import check_text, defaults, load, reload
from keryx.config.schema import (
    DEFAULT,
    IN_MEMORY,
    Config,
    ConfigurationError,
    FrontEnd,
    Personality,
)
from keryx.config.secret_values import secrets_of

__all__ = [
    "DEFAULT",
    "IN_MEMORY",
    "OPENAI_URL",
    "Config",
    "ConfigurationError",
    "FrontEnd",
    "Personality",
    "Provider",
    "change_key",
    "check_text",
    "defaults",
    "keep_key",
    "keep_model",
    "load",
    "reload",
    "remove_key",
    "secrets_of",
    "user_home",
]
