"""`keys.json`: the providers that a person added on the page, and the model chosen there.

Only the owner can read the file. `config.toml` takes precedence over it.
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

from keryx.config.providers import Provider
from keryx.config.schema import ConfigurationError
from keryx.decoding import decode_json

KEYS: Final = "keys.json"
LOCK: Final = "keys.lock"
LONGEST_NAME: Final = 40
"""Characters of a provider's name."""


class Keys(msgspec.Struct, frozen=True):
    """The content of `keys.json`."""

    model: str | None = None
    providers: dict[str, Provider] = msgspec.field(default_factory=dict[str, Provider])


def keep_key(
    home: Path,
    name: str,
    provider: Provider,
    model: str,
    configured: Mapping[str, Provider] | None = None,
) -> str:
    """Store a provider, and make this model of it the default of new sessions.

    Returns the provider's name. It differs from `name` if a provider with another address has that
    name already, or if `config.toml` defines that name differently and would take precedence.
    """
    with _locked(home):
        keys = read_keys(home / KEYS)
        name = _free_name(name, provider, keys.providers, configured or {})
        _write_keys(home, Keys(f"{name}:{model}", {**keys.providers, name: provider}))
        return name


def keep_model(home: Path, model: str) -> None:
    """Store the default model of new sessions."""
    with _locked(home):
        _write_keys(home, msgspec.structs.replace(read_keys(home / KEYS), model=model))


def change_key(home: Path, name: str, provider: Provider) -> None:
    """Store another address or key of a provider; the default model stays."""
    with _locked(home):
        keys = read_keys(home / KEYS)
        _write_keys(home, Keys(keys.model, {**keys.providers, name: provider}))


def remove_key(home: Path, name: str) -> None:
    """Remove a provider. If the default model is one of its models, there is none any more."""
    with _locked(home):
        keys = read_keys(home / KEYS)
        is_default = (keys.model or "").partition(":")[0] == name
        others = {key: provider for key, provider in keys.providers.items() if key != name}
        _write_keys(home, Keys(None if is_default else keys.model, others))


def _free_name(
    base: str,
    provider: Provider,
    stored: Mapping[str, Provider],
    configured: Mapping[str, Provider],
) -> str:
    for number in itertools.count(1):
        name = base if number == 1 else f"{base[: LONGEST_NAME - 4]}-{number}"
        in_keys, in_config = stored.get(name), configured.get(name)
        # A provider in the configuration hides the one of the same name in keys.json.
        is_hidden = in_config is not None and in_config not in (in_keys, provider)
        is_same = in_keys is None or _address(in_keys) == _address(provider)
        if is_same and not is_hidden:
            return name
    raise AssertionError("itertools.count does not end")


def _address(provider: Provider) -> str:
    return provider.base_url.rstrip("/").lower()


@contextmanager
def _locked(home: Path) -> Generator[None]:
    """Hold the lock file, so that concurrent writers do not overwrite each other."""
    file = os.open(home / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def _write_keys(home: Path, keys: Keys) -> None:
    new_path = home / f"{KEYS}.new"
    descriptor = os.open(new_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(keys)))
        file.flush()
        os.fsync(file.fileno())
    new_path.replace(home / KEYS)


def read_keys(path: Path) -> Keys:
    try:
        return decode_json(path.read_bytes(), Keys)
    except FileNotFoundError:
        return Keys()
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error}; remove it, and add the provider on the page again"
        ) from error
