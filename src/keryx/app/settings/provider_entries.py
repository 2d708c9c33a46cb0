"""The providers of models: where each is configured, and changes of their addresses and keys.

A key goes where the provider is: to `keys.json`, or to `config.toml`. No key is ever returned.
Everything here uses the disk: call it in a thread.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from keryx.app.settings.settings_file import SettingsFile, written_tables
from keryx.config import Config, Provider, change_key, remove_key
from keryx.config.editing import Change
from keryx.config.editing.text_edits import ABSENT
from keryx.config.keys import KEYS, read_keys
from keryx.errors import UserMustActError
from keryx.models.servers.providers import ROWS

Source = Literal["page", "config.toml", "environment"]


class ProviderEntry(msgspec.Struct, frozen=True):
    """A provider without its key. `variable` is the environment variable that holds the key."""

    name: str
    base_url: str
    format: str
    source: Source
    has_key: bool
    variable: str | None


def provider_entries(config: Config) -> tuple[ProviderEntry, ...]:
    """Return the providers of the default profile."""
    document = _document(config)
    return tuple(
        ProviderEntry(
            name,
            provider.base_url,
            provider.wire_format,
            source := source_of(config, name, document),
            bool(provider.api_key),
            _variable(config, name, provider, source, document),
        )
        for name, provider in config.default.providers.items()
    )


def source_of(
    config: Config, name: str, document: dict[str, dict[str, Any]] | None = None
) -> Source:
    """Return where the provider of that name is configured; the first one wins."""
    if name in (_document(config) if document is None else document):
        return "config.toml"
    stored = read_keys(config.settings_home / KEYS).providers.get(name)
    return "page" if stored == config.default.providers.get(name) else "environment"


def _document(config: Config) -> dict[str, dict[str, Any]]:
    """Return the providers in `config.toml`, as it is written."""
    return written_tables(config, "providers")


def _variable(
    config: Config,
    name: str,
    provider: Provider,
    source: Source,
    document: dict[str, dict[str, Any]],
) -> str | None:
    if source == "page" or "api_key" in document.get(name, {}):
        return None
    if provider.api_key_env is not None:
        return provider.api_key_env
    row = ROWS.get(name)
    variables = () if row is None else row.keys
    return next((variable for variable in variables if config.environment.get(variable)), None)


def change_provider(file: SettingsFile, config: Config, name: str, provider: Provider) -> None:
    """Store an address and a key that were tested."""
    match source_of(config, name):
        case "page":
            change_key(config.settings_home, name, provider)
        case "environment":
            raise _in_environment(name)
        case "config.toml":
            old = config.default.providers[name]
            changes: list[Change] = []
            if provider.base_url != old.base_url:
                changes.append(Change(("providers", name, "base_url"), provider.base_url))
            if provider.api_key != old.api_key and provider.api_key is not None:
                changes.append(Change(("providers", name, "api_key"), provider.api_key))
            file.change(config, changes)


def remove_provider(file: SettingsFile, config: Config, name: str) -> None:
    """Remove a provider that no setting uses."""
    source = source_of(config, name)
    if source == "environment":
        raise _in_environment(name)
    uses = _uses(config, name)
    if uses:
        raise UserMustActError(
            f"{name} is in use: {', '.join(uses)}; choose other models there, then remove it"
        )
    if source == "page":
        remove_key(config.settings_home, name)
    else:
        file.change(config, (Change(("providers", name), ABSENT),))


def _in_environment(name: str) -> UserMustActError:
    return UserMustActError(
        f"{name} is set by environment variables; change them where you start Keryx"
    )


def _uses(config: Config, name: str) -> list[str]:
    """Return the models of this provider that `config.toml` names, each with its setting."""
    prefix = f"{name}:"
    stored = read_keys(config.settings_home / KEYS).model
    uses: list[str] = []
    for profile_name, profile in config.profiles.items():
        if profile.model and profile.model.startswith(prefix) and profile.model != stored:
            uses.append(f"the default model of the profile {profile_name}")
        uses += [f"the fallback {model}" for model in profile.fallback if model.startswith(prefix)]
        uses += [
            f"the model for {purpose}"
            for purpose, model in profile.auxiliary.items()
            if model.startswith(prefix)
        ]
    return list(dict.fromkeys(uses))
