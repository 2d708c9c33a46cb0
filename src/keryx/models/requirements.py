"""What must be configured before a model can be used: an address, a key and a name.

It owns the errors that say what is missing. It imports nothing heavy, because it is loaded early.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from keryx.errors import ModelError


def check_address(url: str) -> None:
    """Raise `ValueError` if this is not the address of a server; the text shows an example."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port  # raises if it is not a number
    except ValueError:
        is_valid = False
    if not is_valid or not url.isprintable() or " " in url:
        raise ValueError(
            f"{_without_login(url)!r} is not the address of a server: write http:// or https:// "
            "and a host, such as https://api.openai.com/v1"
        )


def _without_login(url: str) -> str:
    """Return the address without the part before an @ and the query, which may be secret."""
    return url.rpartition("@")[2].partition("?")[0]


def key_missing(name: str, variable: str) -> ModelError:
    """Return the error for a key variable that is configured but not set."""
    return ModelError(
        "not_configured",
        f"{name} cannot be used: its key should be in the variable {variable}, which is not set",
        f"set {variable}, or name another in api_key_env of this provider in config.toml",
    )


def provider_missing(name: str, provider: str, *variables: str) -> ModelError:
    """Return the error for a provider that is known by name, and whose variables are not set."""
    names = " and ".join(variables)
    return ModelError(
        "not_configured",
        f"{name} cannot be used: the provider {provider} has no key",
        f"set {names}, or write [providers.{provider}] into config.toml",
    )


def key_invalid(name: str, url: str) -> ModelError:
    """Return the error for a key that cannot be sent; `url` is shown."""
    return ModelError(
        "auth",
        f"the key for {name} has characters that are not allowed in a key",
        f"set the key for {url} again, without quotes or line ends",
    )


def not_named(providers: Iterable[str]) -> ModelError:
    """Return the error for configured providers without a chosen model."""
    names = sorted(providers)
    return ModelError(
        "not_configured",
        f"no model is named (configured providers: {', '.join(names)})",
        f"name one with --model {names[0]}:NAME, or set KERYX_MODEL={names[0]}:NAME, or write"
        f' model = "{names[0]}:NAME" into config.toml',
    )


def purpose_missing(purpose: str) -> ModelError:
    """Return the error for a purpose that has no model and no default."""
    return ModelError(
        "not_configured",
        f"no model is configured for {purpose}",
        f'write {purpose} = "provider:name" below [models.auxiliary] in config.toml',
    )
