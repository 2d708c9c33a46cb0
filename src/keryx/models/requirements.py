"""What must be configured before a model can be asked: an address, a key and a name.

It owns the errors that say which is missing. Nothing heavy is imported: it is read early.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from keryx.errors import ModelError


def check_address(url: str) -> None:
    """`ValueError` if that is no address of a server; the text says what one looks like."""
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port  # an error if it is no number
    except ValueError:
        is_one = False
    if not is_one or not url.isprintable() or " " in url:
        raise ValueError(
            f"{_without_login(url)!r} is no address of a server: write http:// or https:// and a "
            "host, such as https://api.openai.com/v1"
        )


def _without_login(url: str) -> str:
    """As it may be shown: what stands before an @ may be a password, and so may a query."""
    return url.rpartition("@")[2].partition("?")[0]


def key_missing(name: str, variable: str) -> ModelError:
    """The configuration names a variable for the key, and there is none."""
    return ModelError(
        "not_configured",
        f"{name} cannot be asked: its key should be in the variable {variable}, which is not set",
        f"set {variable}, or name another in api_key_env of this provider in config.toml",
    )


def not_named(providers: Iterable[str]) -> ModelError:
    """There are providers, but nobody has said which model to ask."""
    names = sorted(providers)
    return ModelError(
        "not_configured",
        f"no model is named (configured providers: {', '.join(names)})",
        f"name one with --model {names[0]}:NAME, or set KERYX_MODEL={names[0]}:NAME, or write"
        f' model = "{names[0]}:NAME" into config.toml',
    )
