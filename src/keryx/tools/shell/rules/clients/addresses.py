"""Finds the hosts that the words of a command name."""

from __future__ import annotations

import re
from collections.abc import Iterable

from keryx.tools.shell.rules.actions import Argument

_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://(?:[^/@\s]*@)?(\[[^\]]+\]|[^/:?#\s]+)")
_SCP = re.compile(r"(?:[\w.-]+@(?=[\w.-]+:))([\w.-]+):|([\w-]+(?:\.[\w-]+)+|localhost):(?!//)")
_AT = re.compile(r"[\w.-]+@([\w.-]+)$")
_LOCAL = re.compile(r"(?:[\w-]+\.)*localhost|127(?:\.\d+){3}|0\.0\.0\.0|\[?::1\]?")
_BARE = re.compile(
    r"(localhost|\[::1\]|[\w-]+(?:\.[\w-]+)*\.[a-zA-Z]{2,}|\d+(?:\.\d+){3})(?::\d+)?(?:[/?].*)?$"
)


def hosts_in(arguments: Iterable[Argument], *, bare: bool = False) -> tuple[str, ...]:
    """The hosts, in order; `bare`: also of names without a scheme, as `curl` takes them."""
    found: list[str] = []
    for argument in arguments:
        patterns = (_URL, _SCP, _AT, _BARE) if bare else (_URL, _SCP)
        match = next((m for one in patterns if (m := one.match(argument.text))), None)
        if match is None:
            continue
        host = match.group(match.lastindex or 1).lower()
        # A host that the shell makes up is no host that a person could agree to.
        if "$" not in host and "`" not in host and host not in found:
            found.append(host)
    return tuple(found)


def is_local(host: str) -> bool:
    """Whether a host is this machine, as a confined command sees it."""
    return _LOCAL.fullmatch(host) is not None
