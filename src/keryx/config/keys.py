"""Providers that a person gave on a screen, and the model that they chose there: `keys.json`.

For their eyes only. What the configuration file says of a provider counts more.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec

from keryx.config.shapes import ConfigurationError, Provider

KEYS: Final = "keys.json"


class Keys(msgspec.Struct, frozen=True):
    """What `keys.json` holds."""

    model: str | None = None
    providers: dict[str, Provider] = msgspec.field(default_factory=dict[str, Provider])


def keep_key(home: Path, name: str, provider: Provider, model: str) -> None:
    """Remember a provider that a person gave, and the model to begin with; for their eyes only."""
    known = read_keys(home / KEYS)
    _write_keys(home, Keys(model, {**known.providers, name: provider}))


def keep_model(home: Path, model: str) -> None:
    """Remember the model to begin with."""
    _write_keys(home, msgspec.structs.replace(read_keys(home / KEYS), model=model))


def _write_keys(home: Path, keys: Keys) -> None:
    made = home / f"{KEYS}.new"
    file = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "wb") as written:
        written.write(msgspec.json.format(msgspec.json.encode(keys)))
    made.replace(home / KEYS)


def read_keys(path: Path) -> Keys:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Keys)
    except FileNotFoundError:
        return Keys()
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}; remove it") from error
