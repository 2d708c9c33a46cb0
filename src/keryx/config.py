"""What a person configured. The only reader of the environment and of the configuration file.

`config.toml` in the home, then `KERYX_*` variables, then what a program passes. It is read anew at
each turn's start; what is read is frozen, and a running turn keeps it.
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from keryx.errors import UserMustActError

OPENAI_URL: Final = "https://api.openai.com/v1"
FILE: Final = "config.toml"


class ConfigurationError(UserMustActError):
    """The configuration cannot be used; the text says where and why."""


class Provider(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a provider's models are reached, and with what key."""

    base_url: str
    api_key: str | None = None
    api_key_env: str | None = None
    """The name of the variable that holds the key, for those who keep it out of files."""


class LimitsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What ends a turn that would not end by itself."""

    steps: int | None = 200
    tokens: int | None = None
    seconds: float | None = None


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    model: str | None = None
    durability: str = "normal"
    providers: dict[str, Provider] = msgspec.field(default_factory=dict[str, Provider])
    limits: LimitsConfig = msgspec.field(default_factory=LimitsConfig)
    personalities: dict[str, str] = msgspec.field(default_factory=dict[str, str])


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was configured, from all sources."""

    home: Path
    model: str | None
    durability: str
    providers: Mapping[str, Provider]
    limits: LimitsConfig
    personalities: Mapping[str, str]


def load(home: Path | str | None = None, environment: Mapping[str, str] | None = None) -> Config:
    """Read the configuration; `ConfigurationError` says what to mend."""
    env = dict(os.environ) if environment is None else dict(environment)  # noqa: TID251 (the one reader)
    where = Path(home or env.get("KERYX_HOME") or _user_data(env)).expanduser()
    found = _read(where / FILE)
    providers = {**_providers_of(env), **found.providers}
    return Config(
        home=where,
        model=env.get("KERYX_MODEL") or found.model,
        durability=found.durability,
        providers={name: _with_key(each, env) for name, each in providers.items()},
        limits=found.limits,
        personalities=found.personalities,
    )


def _read(path: Path) -> _File:
    try:
        text = path.read_text()
    except FileNotFoundError:
        return _File()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from error
    try:
        return msgspec.convert(tomllib.loads(text), _File)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ConfigurationError(f"{path} is not as it should be: {error}") from error


def _providers_of(env: Mapping[str, str]) -> dict[str, Provider]:
    if not env.get("OPENAI_API_KEY") and not env.get("OPENAI_BASE_URL"):
        return {}
    url = env.get("OPENAI_BASE_URL") or OPENAI_URL
    return {"openai": Provider(base_url=url, api_key=env.get("OPENAI_API_KEY"))}


def _with_key(provider: Provider, env: Mapping[str, str]) -> Provider:
    if provider.api_key is None and provider.api_key_env is not None:
        return Provider(provider.base_url, env.get(provider.api_key_env), provider.api_key_env)
    return provider


def _user_data(env: Mapping[str, str]) -> Path:
    home = Path(env.get("HOME") or "~").expanduser()
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "keryx"
    return Path(env.get("XDG_DATA_HOME") or home / ".local" / "share") / "keryx"
