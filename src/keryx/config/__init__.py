"""Reads and keeps the configuration: files, environment variables, choices made on the page."""

from __future__ import annotations

from keryx.config.homes import user_home
from keryx.config.keys import keep_key, keep_model
from keryx.config.providers import OPENAI_URL, Provider
from keryx.config.reading import load, reload, secrets_of
from keryx.config.schema import (
    DEFAULT,
    IN_MEMORY,
    Config,
    ConfigurationError,
    FrontEnd,
    Personality,
)

__all__ = [
    "DEFAULT",
    "IN_MEMORY",
    "OPENAI_URL",
    "Config",
    "ConfigurationError",
    "FrontEnd",
    "Personality",
    "Provider",
    "keep_key",
    "keep_model",
    "load",
    "reload",
    "secrets_of",
    "user_home",
]
