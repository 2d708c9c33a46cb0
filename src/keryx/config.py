"""What a person configured. The only reader of the environment and of the configuration file.

`config.toml` in the home, then `KERYX_*` variables, then what a program passes. It is read anew at
each turn's start; what is read is frozen, and a running turn keeps it.
"""

from __future__ import annotations

import fnmatch
import os
import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

import msgspec

from keryx.errors import UserMustActError
from keryx.messages import ApprovalMode

OPENAI_URL: Final = "https://api.openai.com/v1"
FILE: Final = "config.toml"
KEYS: Final = "keys.json"
"""Providers that a person gave on a screen; what the file says of one counts more."""
DEFAULT: Final = "default"
"""The profile of sessions that name none."""
_SECRET_NAME: Final = re.compile(
    r"(KEY|TOKEN|SECRET|PASSW(OR)?D|PASSPHRASE|CREDENTIALS?)$|^(KEY|TOKEN|SECRET|PASSWORD)_",
    re.IGNORECASE,
)


class ConfigurationError(UserMustActError):
    """The configuration cannot be used; the text says where and why."""


class Provider(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a provider's models are reached, and with what key."""

    base_url: str
    api_key: str | None = None
    api_key_env: str | None = None
    """The name of the variable that holds the key, for those who keep it out of files."""
    images: tuple[str, ...] = ("gpt-4o*", "gpt-4.1*", "gpt-5*", "o3*", "o4*", "*-vl*", "*vision*")
    """Which of its models are shown images, with * and ?."""

    def sees(self, model: str) -> bool:
        """Whether that model is shown images, not only told of them."""
        return any(fnmatch.fnmatchcase(model, pattern) for pattern in self.images)


class LimitsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What ends a turn that would not end by itself."""

    steps: int | None = 200
    tokens: int | None = None
    seconds: float | None = None


Confined = Literal["on", "required", "off"]
Durability = Literal["normal", "full"]


class ApprovalsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which calls ask a person. Rules are written `tool` or `tool:pattern`, with * and ?."""

    mode: ApprovalMode = "auto"
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    expires: float | None = None
    """Seconds after which nobody may answer any more."""


class Personality(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How an agent speaks."""

    system_prompt: str = ""
    prompt: str = ""
    tone: str = ""
    style: str = ""

    @property
    def text(self) -> str:
        """As the model is told."""
        said = [self.system_prompt or self.prompt]
        said += [f"Tone: {self.tone}"] if self.tone else []
        said += [f"Style: {self.style}"] if self.style else []
        return "\n".join(line for line in said if line)


class ModelsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Models for work beside the turns, by what they do: titles."""

    auxiliary: dict[str, str] = msgspec.field(default_factory=dict[str, str])


class ProfileConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is otherwise for sessions of one profile; what it leaves out is as for all."""

    model: str | None = None
    models: ModelsConfig = msgspec.field(default_factory=ModelsConfig)
    providers: dict[str, Provider] = msgspec.field(default_factory=dict[str, Provider])
    personalities: dict[str, str | Personality] = msgspec.field(
        default_factory=dict[str, str | Personality]
    )
    toolsets: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict[str, tuple[str, ...]])


class Keys(msgspec.Struct, frozen=True):
    """What `keys.json` holds."""

    model: str | None = None
    providers: dict[str, Provider] = msgspec.field(default_factory=dict[str, Provider])


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """What sessions of one profile work with."""

    model: str | None
    auxiliary: Mapping[str, str]
    """Models for work beside the turns; what is not named here is done by the session's own."""
    providers: Mapping[str, Provider]
    personalities: Mapping[str, Personality]
    toolsets: Mapping[str, tuple[str, ...]]
    """The tools and toolsets that a front end (`cli`, `web`, `gateway`) gives its new sessions."""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    model: str | None = None
    models: ModelsConfig = msgspec.field(default_factory=ModelsConfig)
    durability: Durability = "normal"
    providers: dict[str, Provider] = msgspec.field(default_factory=dict[str, Provider])
    limits: LimitsConfig = msgspec.field(default_factory=LimitsConfig)
    approvals: ApprovalsConfig = msgspec.field(default_factory=ApprovalsConfig)
    confinement: Confined = "on"
    personalities: dict[str, str | Personality] = msgspec.field(
        default_factory=dict[str, str | Personality]
    )
    toolsets: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict[str, tuple[str, ...]])
    profiles: dict[str, ProfileConfig] = msgspec.field(default_factory=dict[str, ProfileConfig])


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was configured, from all sources."""

    home: Path
    durability: Durability
    limits: LimitsConfig
    approvals: ApprovalsConfig
    confinement: Confined
    profiles: Mapping[str, Profile]
    """By name; `default` is always there."""
    is_model_written: bool
    """Whether a variable or `config.toml` names the model: then no choice elsewhere counts."""
    written: tuple[tuple[int, int] | None, ...]
    """When the files were written and how long they were, to notice a change."""
    environment: Mapping[str, str]
    """The variables that were read, for reading the file again."""

    @property
    def default(self) -> Profile:
        """What sessions of no other profile work with."""
        return self.profiles[DEFAULT]

    def profile(self, name: str) -> Profile:
        """That profile, or the default one if there is none of that name."""
        return self.profiles.get(name, self.default)


def load(home: Path | str | None = None, environment: Mapping[str, str] | None = None) -> Config:
    """Read the configuration; `ConfigurationError` says what to mend."""
    env = dict(os.environ) if environment is None else dict(environment)  # noqa: TID251 (the one reader)
    where = Path(home or env.get("KERYX_HOME") or _user_data(env)).expanduser()
    return _load(where, env)


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
    found, keys = _read(where / FILE), _read_keys(where / KEYS)
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
        providers={name: _with_key(each, env) for name, each in providers.items()},
        personalities={
            name: Personality(each) if isinstance(each, str) else each
            for name, each in personalities.items()
        },
        toolsets={**general.toolsets, **own.toolsets},
    )


def keep_key(home: Path, name: str, provider: Provider, model: str) -> None:
    """Remember a provider that a person gave, and the model to begin with; for their eyes only."""
    known = _read_keys(home / KEYS)
    _write_keys(home, Keys(model, {**known.providers, name: provider}))


def keep_model(home: Path, model: str) -> None:
    """Remember the model to begin with."""
    _write_keys(home, msgspec.structs.replace(_read_keys(home / KEYS), model=model))


def _write_keys(home: Path, keys: Keys) -> None:
    made = home / f"{KEYS}.new"
    file = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "wb") as written:
        written.write(msgspec.json.format(msgspec.json.encode(keys)))
    made.replace(home / KEYS)


def _read_keys(path: Path) -> Keys:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Keys)
    except FileNotFoundError:
        return Keys()
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}; remove it") from error


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
        return msgspec.structs.replace(provider, api_key=env.get(provider.api_key_env))
    return provider


def _user_data(env: Mapping[str, str]) -> Path:
    home = Path(env.get("HOME") or "~").expanduser()
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "keryx"
    return Path(env.get("XDG_DATA_HOME") or home / ".local" / "share") / "keryx"
