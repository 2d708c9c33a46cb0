"""The settings of MCP servers, and the reader of the common `mcpServers` form.

An entry that cannot be used is reported with what to do, and the others work.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, cast
from urllib.parse import urlsplit

import msgspec

from keryx.decoding import convert

LARGEST_FILE: Final = 1024 * 1024
"""Bytes of a file of servers. A person wrote it; a larger one is something else."""
DEFAULT_TIMEOUT: Final = 120.0
SERVER_NAME: Final = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_-]{0,31}")
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
# Other programs write these into the same form; they change nothing here.
_IGNORED: Final = frozenset(("type", "transport", "description", "alwaysAllow", "autoApprove"))


class LoginSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who Keryx is at a server that wants OAuth. Without it, Keryx registers itself there."""

    client_id: str | None = None
    """The id of a client that was registered by hand."""
    client_secret: str | None = None
    metadata_url: str | None = None
    """An address with a client id metadata document; it is the id, where the server takes that."""
    person: bool = True
    """Whether a person logs in; otherwise the id and the secret are the login."""

    def __post_init__(self) -> None:
        url = self.metadata_url
        if url is not None and "${" not in url and not _is_document(url):
            raise ValueError("`metadata_url` must be an https address with a path")
        if self.client_secret is not None and self.client_id is None:
            raise ValueError("`client_secret` needs `client_id`")
        if not self.person and self.client_secret is None:
            raise ValueError("a login without a person needs `client_id` and `client_secret`")


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one server is reached: a program (`command`), or an address (`url`)."""

    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    """Variables of the program, in addition to the few that every child gets."""
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = {}
    oauth: LoginSettings | None = None
    enabled: bool = True
    timeout: Annotated[float, msgspec.Meta(gt=0, le=86_400)] = DEFAULT_TIMEOUT
    """Seconds for one call."""
    confined: bool | None = None
    """Whether the program runs within the same walls as the commands of a session."""

    def __post_init__(self) -> None:
        if (self.command is None) == (self.url is None):
            raise ValueError("it needs either `command` (a program) or `url` (an address)")
        if self.url is not None and not _is_address(self.url):
            raise ValueError("`url` must begin with http:// or https:// and name a host")
        if self.oauth is not None and self.url is None:
            raise ValueError("`oauth` is for a server with a `url`")
        if self.command is not None and not self.command.strip():
            raise ValueError("`command` is empty; name a program")

    @property
    def is_confined(self) -> bool:
        return self.confined is True

    @property
    def is_unconfined(self) -> bool:
        """Whether the settings ask for no confinement, instead of leaving that open."""
        return self.confined is False


class ServerList(msgspec.Struct, frozen=True):
    """The servers that can be used, by name, and what is wrong with the others."""

    servers: Mapping[str, ServerSettings] = msgspec.field(default_factory=dict[str, ServerSettings])
    problems: tuple[str, ...] = ()

    def __or__(self, other: ServerList) -> ServerList:
        """Return both together; of two servers of one name, that of `other`."""
        return ServerList({**self.servers, **other.servers}, self.problems + other.problems)


def read_servers(path: Path, environment: Mapping[str, str]) -> ServerList:
    """Read a file in the form `{"mcpServers": {...}}`. No file: no servers. Reads the disk."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        return ServerList()
    except OSError as error:
        reason = error.strerror or str(error)
        return ServerList(problems=(f"{path} cannot be read: {reason}; correct it, or remove it",))
    if len(data) > LARGEST_FILE:
        return ServerList(problems=(f"{path} has more than {LARGEST_FILE} bytes; make it smaller",))
    return decode_servers(data, str(path), environment)


def decode_servers(data: bytes, path: str, environment: Mapping[str, str]) -> ServerList:
    """Return the servers in this content of a file; `path` names the file in the problems."""
    try:
        content: object = msgspec.json.decode(data)
    except (ValueError, RecursionError) as error:
        return ServerList(problems=(f"{path} is not JSON: {error}; correct it",))
    fields = cast("dict[str, object]", content) if isinstance(content, dict) else {}
    entries = fields.get("mcpServers")
    if not isinstance(entries, dict):
        return ServerList(problems=(f'{path} has no object "mcpServers"; write the servers there',))
    return parse_servers(cast("dict[str, object]", entries), path, environment)


def parse_servers(
    entries: Mapping[str, object], where: str, environment: Mapping[str, str]
) -> ServerList:
    """Turn raw entries into settings. `where` names their source in the problems."""
    servers: dict[str, ServerSettings] = {}
    problems: list[str] = []
    for name, entry in entries.items():
        try:
            _check_name(name)
            servers[name] = _settings(entry, environment)
        except (ValueError, RecursionError) as error:
            problems.append(
                f"{where}: the MCP server {name[:40]!r} cannot be used: {error}; "
                "correct its entry; the other servers work"
            )
    return ServerList(servers, tuple(problems))


def _check_name(name: str) -> None:
    if SERVER_NAME.fullmatch(name) is None:
        raise ValueError("choose a name of up to 32 letters, digits, `_` and `-`")


def _settings(entry: object, environment: Mapping[str, str]) -> ServerSettings:
    if not isinstance(entry, Mapping):
        raise ValueError("its entry must be an object")  # noqa: TRY004 (it is a wrong value of a file)
    fields = dict(cast("Mapping[str, Any]", entry))
    kind = fields.get("type", fields.get("transport"))
    if kind == "sse":
        raise ValueError("the transport `sse` is outdated; use the address for streamable HTTP")
    if "disabled" in fields:
        fields.setdefault("enabled", not fields.pop("disabled"))
    fields = {name: value for name, value in fields.items() if name not in _IGNORED}
    _check_names(fields)
    settings = convert(fields, ServerSettings)
    return msgspec.structs.replace(
        settings,
        command=None if settings.command is None else _expanded(settings.command, environment),
        args=tuple(_expanded(text, environment) for text in settings.args),
        env={name: _expanded(text, environment) for name, text in settings.env.items()},
        url=None if settings.url is None else _expanded(settings.url, environment),
        headers={name: _expanded(text, environment) for name, text in settings.headers.items()},
        oauth=None if settings.oauth is None else _expanded_login(settings.oauth, environment),
    )


def _expanded_login(login: LoginSettings, environment: Mapping[str, str]) -> LoginSettings:
    texts = {name: getattr(login, name) for name in ("client_id", "client_secret", "metadata_url")}
    expanded = {name: text and _expanded(text, environment) for name, text in texts.items()}
    return msgspec.structs.replace(login, **expanded)


def _check_names(fields: Mapping[str, object]) -> None:
    import difflib  # noqa: PLC0415 (only a wrong name needs it)

    names = [field.name for field in msgspec.structs.fields(ServerSettings)]
    for name in fields:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            advice = f'did you mean "{close[0]}"?' if close else f"there are {', '.join(names)}"
            raise ValueError(f'unknown setting "{name}"; {advice}')


def _expanded(text: str, environment: Mapping[str, str]) -> str:
    """Replace `${NAME}` and `${NAME:-default}` by the variable of that name."""

    def value(match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        if name in environment:
            return environment[name]
        if default is not None:
            return default
        raise ValueError(f"the variable {name} is not set; set it")

    if "\0" in text:
        raise ValueError("a text contains a NUL character; remove it")
    return _VARIABLE.sub(value, text)


def _is_document(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme == "https" and bool(parts.hostname) and parts.path not in ("", "/")


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return "${" in url or (parts.scheme in ("http", "https") and bool(parts.hostname))
