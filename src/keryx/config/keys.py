"""Providers that a person gave on a screen, and the model that they chose there: `keys.json`.

For their eyes only. What the configuration file says of a provider counts more.
"""

from __future__ import annotations

import fcntl
import itertools
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from keryx.config.schema import ConfigurationError, Provider

KEYS: Final = "keys.json"
LOCK: Final = "keys.lock"
LONGEST_NAME: Final = 40
"""Characters of a provider's name."""


class Keys(msgspec.Struct, frozen=True):
    """What `keys.json` holds."""

    model: str | None = None
    providers: dict[str, Provider] = msgspec.field(default_factory=dict[str, Provider])


def keep_key(
    home: Path,
    name: str,
    provider: Provider,
    model: str,
    configured: Mapping[str, Provider] | None = None,
) -> str:
    """Remember a provider that a person gave, and the model of it to begin with.

    Returns the name that it has from now on: another one if that is the name of another address,
    or if the configuration says something else of it, which would count more.
    """
    with _alone(home):
        keys = read_keys(home / KEYS)
        name = _free_name(name, provider, keys.providers, configured or {})
        _write_keys(home, Keys(f"{name}:{model}", {**keys.providers, name: provider}))
        return name


def keep_model(home: Path, model: str) -> None:
    """Remember the model to begin with."""
    with _alone(home):
        _write_keys(home, msgspec.structs.replace(read_keys(home / KEYS), model=model))


def _free_name(
    base: str,
    provider: Provider,
    stored: Mapping[str, Provider],
    configured: Mapping[str, Provider],
) -> str:
    for number in itertools.count(1):
        name = base if number == 1 else f"{base[: LONGEST_NAME - 4]}-{number}"
        before, written = stored.get(name), configured.get(name)
        # What the configuration says of a name hides what is kept by that name.
        is_hidden = written is not None and written not in (before, provider)
        is_same = before is None or _address(before) == _address(provider)
        if is_same and not is_hidden:
            return name
    raise AssertionError("there is no end of numbers")


def _address(provider: Provider) -> str:
    return provider.base_url.rstrip("/").lower()


@contextmanager
def _alone(home: Path) -> Generator[None]:
    """Of several who keep something at the same time, each keeps what the others kept."""
    file = os.open(home / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


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
