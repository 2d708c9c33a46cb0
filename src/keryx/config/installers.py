"""The environment of programs that install or download packages for the person."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

# They need to know the person's folders, proxies, certificates and settings of pip.
_PASSED_ON: Final = re.compile(
    r"PATH|HOME|LANG|TZ|TERM|USER|LOGNAME|TMPDIR|VIRTUAL_ENV|NETRC|SSL_CERT_(FILE|DIR)"
    r"|(REQUESTS|CURL)_CA_BUNDLE|XDG_(CACHE|CONFIG|DATA)_HOME|(LC|PIP|PLAYWRIGHT)_\w+"
    r"|\w+_proxy|\w+_PROXY"
)


def installer_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that an installer gets; the others may be secrets."""
    return {name: value for name, value in variables.items() if _PASSED_ON.fullmatch(name)}
