"""What a person configured: in files, in the environment, on a screen."""

from __future__ import annotations

from keryx.config.homes import user_home
from keryx.config.keys import keep_key, keep_model
from keryx.config.reading import OPENAI_URL, load, reload, secrets_of
from keryx.config.schema import (
    DEFAULT,
    IN_MEMORY,
    Config,
    ConfigurationError,
    Personality,
    Provider,
)

__all__ = [
    "DEFAULT",
    "IN_MEMORY",
    "OPENAI_URL",
    "Config",
    "ConfigurationError",
    "Personality",
    "Provider",
    "keep_key",
    "keep_model",
    "load",
    "reload",
    "secrets_of",
    "user_home",
]
