"""Reads the configuration from the files of a home and from the environment; nothing else does.

Precedence: flags, KERYX_MODEL, config.toml, then OPENAI_*, then what was chosen on the page
(`keys.json`). It is read again at each turn's start; a `Config` is frozen, and a running turn keeps
the one that it started with.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from keryx.config.gateway import GatewayConfig, TelegramConfig, WebhookConfig, with_secrets
from keryx.config.homes import file_stamp, find_home, is_text
from keryx.config.keys import KEYS, read_keys
from keryx.config.providers import Provider, completed, providers_of
from keryx.config.schema import (
    COMPACT_AT,
    DEFAULT,
    ApprovalsConfig,
    Config,
    ConfigurationError,
    Confined,
    Durability,
    FileStamp,
    HonchoConfig,
    LimitsConfig,
    McpConfig,
    MemoryConfig,
    ModelsConfig,
    Personality,
    Profile,
    ProfileConfig,
    ServerConfig,
    SpeechConfig,
    ToolsConfig,
    UsageConfig,
    UsageExportConfig,
    WebConfig,
)
from keryx.config.toolsets import check_sets, unknown_name
from keryx.config.users import CONFINED, USER_FILE, UserRecord, find_settings, limits_of, read_user
from keryx.decoding import convert
from keryx.ports.memory import profile_and_person
from keryx.tools.hooks.settings import HookSettings, parse_hooks
from keryx.tools.mcp.settings import ServerList, parse_servers, read_servers

FILE: Final = "config.toml"
MCP_FILE: Final = "mcp.json"


class FileConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The form of `config.toml`."""

    model: str | None = None
    models: ModelsConfig = msgspec.field(default_factory=ModelsConfig)
    durability: Durability = "normal"
    providers: dict[str, Provider] = msgspec.field(default_factory=dict[str, Provider])
    limits: LimitsConfig = msgspec.field(default_factory=LimitsConfig)
    approvals: ApprovalsConfig = msgspec.field(default_factory=ApprovalsConfig)
    server: ServerConfig = msgspec.field(default_factory=ServerConfig)
    confinement: Confined = "on"
    tools: ToolsConfig = msgspec.field(default_factory=ToolsConfig)
    mcp: McpConfig = msgspec.field(default_factory=McpConfig)
    memory: MemoryConfig = msgspec.field(default_factory=MemoryConfig)
    gateway: GatewayConfig = msgspec.field(default_factory=GatewayConfig)
    usage: UsageConfig = msgspec.field(default_factory=UsageConfig)
    personalities: dict[str, str | Personality] = msgspec.field(
        default_factory=dict[str, str | Personality]
    )
    toolsets: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict[str, tuple[str, ...]])
    hooks: Any = ()
    profiles: dict[str, ProfileConfig] = msgspec.field(default_factory=dict[str, ProfileConfig])


def load(home: Path | str | None = None, environment: Mapping[str, str] | None = None) -> Config:
    """Read the configuration; `ConfigurationError` says what to correct."""
    variables = dict(os.environ) if environment is None else environment  # noqa: TID251 (the one reader)
    env = {name: value for name, value in variables.items() if is_text(name) and is_text(value)}
    for name in sorted(variables.keys() - env.keys()):
        if name.startswith(("KERYX_", "OPENAI_")):
            raise ConfigurationError(f"the variable {name!a} is not UTF-8; set it again")
    return _load(find_home(home, env), env)


def check_text(config: Config, text: str, *, label: str = "") -> Config:
    """Return the configuration as it would be with this text in `config.toml`.

    `ConfigurationError` says why the text cannot be used, after the label, or else the path of the
    file. A wrong MCP server counts too.
    """
    new = _load(config.home, config.environment, text, label)
    old_problems = set(config.mcp.problems)
    for problem in new.mcp.problems:
        if problem not in old_problems:
            raise ConfigurationError(problem)
    return new


def defaults() -> dict[str, Any]:
    """Return the values of all settings that no file names."""
    values: dict[str, Any] = msgspec.to_builtins(FileConfig())
    return {**values, "models": {**values["models"], "compact_at": COMPACT_AT}}


def reload(config: Config) -> Config:
    """Return the same object if the files have not changed, else read them again."""
    if all(file_stamp(path) == stamp for path, stamp in config.stamps.items()):
        return config
    return _load(config.home, config.environment)


def _load(home: Path, env: Mapping[str, str], text: str | None = None, label: str = "") -> Config:
    # Before anything is read: a file that changes meanwhile is then read again.
    stamps = _stamps(home / USER_FILE)
    settings_home = find_settings(home)
    stamps |= _stamps(*(settings_home / name for name in (FILE, KEYS, MCP_FILE)))
    user, path = read_user(home), settings_home / FILE
    file, keys = (
        _parse(_read(path) if text is None else text, label or str(path)),
        read_keys(settings_home / KEYS),
    )
    profiles = {DEFAULT: ProfileConfig(), **_checked_names(file.profiles, path)}
    base = ProfileConfig(
        model=file.model or keys.model,
        models=file.models,
        providers={**keys.providers, **_variables(env), **file.providers},
        personalities=file.personalities,
        toolsets=profiles[DEFAULT].toolsets,
    )
    return Config(
        home=home,
        settings_home=settings_home,
        fence=None if user is None else user.folder,
        durability=file.durability,
        limits=file.limits if user is None else limits_of(user, file.limits),
        approvals=file.approvals,
        server=file.server,
        confinement=file.confinement if user is None else CONFINED,
        tools=_tools(file.tools, env),
        mcp=_mcp_servers(settings_home, file, env),
        memory=_memory(file.memory, env, user),
        gateway=with_secrets(file.gateway, env),
        usage=file.usage,
        hooks=_hooks(file, settings_home / FILE),
        toolsets=check_sets(file.toolsets, file.profiles, settings_home / FILE),
        profiles={name: _profile(base, profile, env) for name, profile in profiles.items()},
        is_model_written=bool(env.get("KERYX_MODEL") or file.model or profiles[DEFAULT].model),
        stamps=stamps,
        environment=env,
    )


def _checked_names(profiles: dict[str, ProfileConfig], path: Path) -> dict[str, ProfileConfig]:
    for name in profiles:
        if profile_and_person(name)[1] is not None:
            raise ConfigurationError(
                f"{path}: the profile {name!r} is named like the memories of a person of the "
                "gateway; give it a name without a slash"
            )
    return profiles


def _profile(base: ProfileConfig, own: ProfileConfig, env: Mapping[str, str]) -> Profile:
    providers = {**base.providers, **own.providers}
    personalities = {**base.personalities, **own.personalities}
    return Profile(
        model=env.get("KERYX_MODEL") or own.model or base.model,
        auxiliary={**base.models.auxiliary, **own.models.auxiliary},
        fallback=own.models.fallback or base.models.fallback,
        compact_at=own.models.compact_at or base.models.compact_at or COMPACT_AT,
        providers=_completed(providers, env),
        personalities={
            name: Personality(value) if isinstance(value, str) else value
            for name, value in personalities.items()
        },
        toolsets={**base.toolsets, **own.toolsets},
    )


def _variables(env: Mapping[str, str]) -> dict[str, Provider]:
    try:
        return providers_of(env)
    except ValueError as error:
        raise ConfigurationError(str(error)) from error


def _completed(providers: Mapping[str, Provider], env: Mapping[str, str]) -> dict[str, Provider]:
    try:
        return {name: completed(name, provider, env) for name, provider in providers.items()}
    except ValueError as error:
        raise ConfigurationError(f"{FILE}: {error}") from error


def _tools(tools: ToolsConfig, env: Mapping[str, str]) -> ToolsConfig:
    web = tools.web
    keys = {
        "brave_api_key": web.brave_api_key or env.get(web.brave_api_key_env),
        "tavily_api_key": web.tavily_api_key or env.get(web.tavily_api_key_env),
    }
    return msgspec.structs.replace(tools, web=msgspec.structs.replace(web, **keys))


def _memory(memory: MemoryConfig, env: Mapping[str, str], user: UserRecord | None) -> MemoryConfig:
    honcho = memory.honcho
    key = honcho.api_key or env.get(honcho.api_key_env)
    workspace = honcho.workspace if user is None else f"{honcho.workspace}-{user.name}"
    honcho = msgspec.structs.replace(honcho, api_key=key, workspace=workspace)
    return msgspec.structs.replace(memory, honcho=honcho)


def _mcp_servers(home: Path, file: FileConfig, env: Mapping[str, str]) -> ServerList:
    """Return the MCP servers of both files; of one name, that in `config.toml`."""
    stored = read_servers(home / MCP_FILE, env)
    if not file.mcp.servers:
        return stored
    return stored | parse_servers(file.mcp.servers, str(home / FILE), env)


def _hooks(file: FileConfig, path: Path) -> tuple[HookSettings, ...]:
    if not file.hooks and file.hooks != {}:
        return ()
    try:
        return parse_hooks(file.hooks)
    except ValueError as error:
        raise ConfigurationError(f"{path}: {error}; correct it") from error


def _stamps(*files: Path) -> dict[str, FileStamp]:
    return {str(file): file_stamp(file) for file in files}


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return ""
    except NotADirectoryError as error:
        raise ConfigurationError(
            f"the home {path.parent} is not a folder; choose another with KERYX_HOME or --home"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error}; correct it, or choose another home with KERYX_HOME"
        ) from error


def _parse(text: str, label: str) -> FileConfig:
    if not text:
        return FileConfig()
    import tomllib  # noqa: PLC0415 (many homes have no such file, and start sooner without)

    try:
        return convert(tomllib.loads(text), FileConfig)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{label} is not valid TOML: {error}; correct it") from error
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{label}: {_correction(str(error))}") from error


_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*?)`(?: - at `\$(.*)`)?")
_SECTIONS: Final[Mapping[str, type[msgspec.Struct]]] = {
    "": FileConfig,
    "models": ModelsConfig,
    "providers": Provider,
    "limits": LimitsConfig,
    "approvals": ApprovalsConfig,
    "server": ServerConfig,
    "tools": ToolsConfig,
    "web": WebConfig,
    "speech": SpeechConfig,
    "mcp": McpConfig,
    "memory": MemoryConfig,
    "honcho": HonchoConfig,
    "gateway": GatewayConfig,
    "telegram": TelegramConfig,
    "webhook": WebhookConfig,
    "usage": UsageConfig,
    "export": UsageExportConfig,
    "personalities": Personality,
    "profiles": ProfileConfig,
}
"""The settings that each table may hold, by the last name in the table's path."""


def _correction(error: str) -> str:
    """Return what to correct, given msgspec's own words for it."""
    unknown = _UNKNOWN.fullmatch(error)
    if unknown is None:
        return f"{error}; correct it"
    name, path = unknown[1], (unknown[2] or "").replace("[...]", ".NAME").removeprefix(".")
    section = path.removesuffix(".NAME").rpartition(".")[2]
    settings = [field.encode_name for field in msgspec.structs.fields(_SECTIONS[section])]
    place = f" in [{path}]" if path else ""
    return unknown_name("setting", name, settings, place)
