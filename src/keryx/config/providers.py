"""The providers of models: what is configured for each, and what the environment says."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from typing import Annotated, Final
from urllib.parse import urlsplit

import msgspec

from keryx.models.requirements import check_address
from keryx.models.servers.providers import CHAT, FORMATS, ROWS, Row, azure_address, row_at

OPENAI_URL: Final = ROWS["openai"].base_url
SEEING: Final = (
    *("gpt-4o*", "gpt-4.1*", "gpt-5*", "o3", "o3-pro*", "o3-20*", "o4*", "*-vl*", "*vision*"),
    *("*/gpt-4o*", "*/gpt-4.1*", "*/gpt-5*", "*/o3", "*/o3-pro*", "*/o4*", "*claude-*"),
    *("*gemini-*", "*grok-4*", "*pixtral*", "*llama-4*", "*gemma-3*", "*gemma3*"),
    *("*gemma-4*", "*gemma4*", "mistral-medium*", "mistral-small-latest"),
)
"""Patterns (* and ?) of models that can read images."""


class Provider(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a provider's models are reached, and with what key."""

    base_url: str = ""
    """The address; empty for a provider that Keryx knows by its name. `{model}` is the model."""
    api_key: str | None = None
    api_key_env: str | None = None
    """The name of the environment variable that holds the key, to keep the key out of files."""
    images: tuple[str, ...] = SEEING
    """Patterns (* and ?) of the models that can read images."""
    windows: dict[str, Annotated[int, msgspec.Meta(ge=1)]] = {}
    """Context windows in tokens by pattern (* and ?), for models that are not public."""
    priced_as: str | None = None
    """For a server that forwards requests: the address of the provider whose prices apply."""
    format: str = ""
    """The wire format; empty: that of the provider at this address, or Chat Completions."""

    def __post_init__(self) -> None:
        """Raise `ValueError`, with an example, if an address or the format is wrong."""
        if self.base_url:
            check_address(self.base_url)
        if self.priced_as is not None:
            check_address(self.priced_as)
        if self.format and self.format not in FORMATS:
            raise ValueError(_unknown_format(self.format))

    @property
    def wire_format(self) -> str:
        """Return the name of the wire format."""
        row = row_at(self.base_url)
        return self.format or (CHAT if row is None else row.format)

    @property
    def missing_key(self) -> str | None:
        """Return the environment variable that should hold the key, if it is not set."""
        return self.api_key_env if not self.api_key else None

    def window(self, model: str) -> int | None:
        """Return the context window of that model in tokens, if it is configured."""
        sizes = (size for name, size in self.windows.items() if fnmatch.fnmatchcase(model, name))
        return next(sizes, None)

    @property
    def public_address(self) -> str | None:
        """Return the address to look up public prices by; None for a server on this machine."""
        if self.priced_as is not None:
            return self.priced_as
        host = urlsplit(self.base_url).hostname or ""
        return None if host == "localhost" or host.startswith("127.") else self.base_url

    def sees(self, model: str) -> bool:
        """Return whether that model can read images; others get only their names."""
        return any(fnmatch.fnmatchcase(model, pattern) for pattern in self.images)


def _unknown_format(name: str) -> str:
    import difflib  # noqa: PLC0415 (only a wrong name needs it)

    close = difflib.get_close_matches(name, FORMATS, n=1)
    advice = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(FORMATS)}"
    return f"there is no wire format {name!r}; {advice}"


def providers_of(env: Mapping[str, str]) -> dict[str, Provider]:
    """Return the providers whose variables are set; `ValueError` says which is wrong."""
    providers: dict[str, Provider] = {}
    for name, row in ROWS.items():
        variable = next((variable for variable in row.keys if env.get(variable)), None)
        url = _address(name, row, env)
        if url and (variable is not None or (name == "openai" and env.get("OPENAI_BASE_URL"))):
            providers[name] = Provider(url, None if variable is None else env[variable])
    return providers


def _address(name: str, row: Row, env: Mapping[str, str]) -> str:
    if name == "openai":
        url = env.get("OPENAI_BASE_URL") or row.base_url
        _check_variable("OPENAI_BASE_URL", url)
        return url
    if row.address and env.get(row.address):
        _check_variable(row.address, env[row.address])
        version = env.get("AZURE_OPENAI_API_VERSION") or env.get("OPENAI_API_VERSION")
        return azure_address(env[row.address], version)
    return row.base_url


def _check_variable(variable: str, url: str) -> None:
    try:
        check_address(url)
    except ValueError as error:
        raise ValueError(f"the variable {variable} cannot be used: {error}") from error


def completed(name: str, provider: Provider, env: Mapping[str, str]) -> Provider:
    """Return the provider with its address and key; `ValueError` says what is missing.

    A provider that Keryx knows by its name needs neither in the file.
    """
    row = ROWS.get(name)
    if not provider.base_url:
        url = "" if row is None else _address(name, row, env)
        if not url:
            variable = f", or set {row.address}" if row is not None and row.address else ""
            raise ValueError(
                f"[providers.{name}] has no address: write base_url, such as "
                f'base_url = "{OPENAI_URL}"{variable}'
            )
        provider = msgspec.structs.replace(provider, base_url=url)
        if provider.api_key is None and provider.api_key_env is None and row is not None:
            variables = [variable for variable in row.keys if env.get(variable)]
            usual = next(iter(variables or row.keys), None)
            provider = msgspec.structs.replace(provider, api_key_env=usual)
    if provider.api_key is None and provider.api_key_env is not None:
        return msgspec.structs.replace(provider, api_key=env.get(provider.api_key_env))
    return provider
