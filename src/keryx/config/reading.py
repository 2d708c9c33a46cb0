"""From the files and the environment to what is configured. The only reader of either.

`config.toml` in the home, then `KERYX_*` variables, then what a program passes. It is read anew at
each turn's start; what is read is frozen, and a running turn keeps it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from keryx.config.homes import find_home, is_text
from keryx.config.keys import KEYS, read_keys
from keryx.config.schema import (
    COMPACT_AT,
    DEFAULT,
    ApprovalsConfig,
    Config,
    ConfigurationError,
    Confined,
    Durability,
    LimitsConfig,
    ModelsConfig,
    Personality,
    Profile,
    ProfileConfig,
    Provider,
    ServerConfig,
)

OPENAI_URL: Final = "https://api.openai.com/v1"
FILE: Final = "config.toml"
_SECRET_NAME: Final = re.compile(
    r"(KEY|TOKEN|SECRET|PASSW(OR)?D|PASSPHRASE|CREDENTIALS?)$|^(KEY|TOKEN|SECRET|PASSWORD)_",
    re.IGNORECASE,
)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    model: str | None = None
    models: ModelsConfig = msgspec.field(default_factory=ModelsConfig)
    durability: Durability = "normal"
    providers: dict[str, Provider] = msgspec.field(default_factory=dict[str, Provider])
    limits: LimitsConfig = msgspec.field(default_factory=LimitsConfig)
    approvals: ApprovalsConfig = msgspec.field(default_factory=ApprovalsConfig)
    server: ServerConfig = msgspec.field(default_factory=ServerConfig)
    confinement: Confined = "on"
    personalities: dict[str, str | Personality] = msgspec.field(
        default_factory=dict[str, str | Personality]
    )
    toolsets: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict[str, tuple[str, ...]])
    profiles: dict[str, ProfileConfig] = msgspec.field(default_factory=dict[str, ProfileConfig])


def load(home: Path | str | None = None, environment: Mapping[str, str] | None = None) -> Config:
    """Read the configuration; `ConfigurationError` says what to mend."""
    given = dict(os.environ) if environment is None else environment  # noqa: TID251 (the one reader)
    env = {name: value for name, value in given.items() if is_text(name) and is_text(value)}
    for name in sorted(given.keys() - env.keys()):
        if name.startswith(("KERYX_", "OPENAI_")):
            raise ConfigurationError(f"the variable {name!a} is not UTF-8; set it again")
    return _load(find_home(home, env), env)


def reload(known: Config) -> Config:
    """The same object if the file has not changed, else what it says now."""
    if _stamps(known.home) == known.written:
        return known
    return _load(known.home, known.environment)


def secrets_of(found: Config) -> dict[str, str]:
    """The values that nobody may see, by name: keys of providers, and variables that sound so."""
    secrets = {
        name: value for name, value in found.environment.items() if _SECRET_NAME.search(name)
    }
    known = set(secrets.values())
    for profile, each in found.profiles.items():
        for name, provider in each.providers.items():
            if provider.api_key and provider.api_key not in known:
                known.add(provider.api_key)
                named = provider.api_key_env or f"the key of {name}"
                secrets[f"{named} ({profile})" if named in secrets else named] = provider.api_key
    return secrets


def _load(where: Path, env: Mapping[str, str]) -> Config:
    written = _stamps(where)
    found, keys = _read(where / FILE), read_keys(where / KEYS)
    named = env.get("KERYX_MODEL") or found.model
    general = ProfileConfig(
        model=named or keys.model,
        models=found.models,
        providers={**keys.providers, **_providers_of(env), **found.providers},
        personalities=found.personalities,
        toolsets=found.toolsets,
    )
    own = {DEFAULT: ProfileConfig(), **found.profiles}
    return Config(
        home=where,
        durability=found.durability,
        limits=found.limits,
        approvals=found.approvals,
        server=found.server,
        confinement=found.confinement,
        profiles={name: _profile(general, each, env) for name, each in own.items()},
        is_model_written=bool(named),
        written=written,
        environment=env,
    )


def _profile(general: ProfileConfig, own: ProfileConfig, env: Mapping[str, str]) -> Profile:
    providers = {**general.providers, **own.providers}
    personalities = {**general.personalities, **own.personalities}
    return Profile(
        model=own.model or general.model,
        auxiliary={**general.models.auxiliary, **own.models.auxiliary},
        fallback=own.models.fallback or general.models.fallback,
        compact_at=own.models.compact_at or general.models.compact_at or COMPACT_AT,
        providers={name: _with_key(each, env) for name, each in providers.items()},
        personalities={
            name: Personality(each) if isinstance(each, str) else each
            for name, each in personalities.items()
        },
        toolsets={**general.toolsets, **own.toolsets},
    )


def _stamps(home: Path) -> tuple[tuple[int, int] | None, ...]:
    return tuple(_stamp(home / name) for name in (FILE, KEYS))


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _read(path: Path) -> _File:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return _File()
    except NotADirectoryError as error:
        raise ConfigurationError(
            f"the home {path.parent} is no folder; choose another with KERYX_HOME or --home"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error}; mend it, or choose another home with KERYX_HOME"
        ) from error
    import tomllib  # noqa: PLC0415 (many homes have no such file, and start sooner without)

    try:
        return msgspec.convert(tomllib.loads(text), _File)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ConfigurationError(f"{path} is not as it should be: {error}") from error


def _providers_of(env: Mapping[str, str]) -> dict[str, Provider]:
    if not env.get("OPENAI_API_KEY") and not env.get("OPENAI_BASE_URL"):
        return {}
    url = env.get("OPENAI_BASE_URL") or OPENAI_URL
    try:
        return {"openai": Provider(base_url=url, api_key=env.get("OPENAI_API_KEY"))}
    except ValueError as error:
        raise ConfigurationError(f"the variable OPENAI_BASE_URL cannot be used: {error}") from error


def _with_key(provider: Provider, env: Mapping[str, str]) -> Provider:
    if provider.api_key is None and provider.api_key_env is not None:
        return msgspec.structs.replace(provider, api_key=env.get(provider.api_key_env))
    return provider
