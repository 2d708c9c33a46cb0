"""What named users may ask the server for; everything else is the owner's.

Routes that are not listed here are refused, so a new route is closed until somebody opens it.
"""

from __future__ import annotations

import re
from typing import Final

from keryx.server.access.auth import Caller
from keryx.server.problems import ProblemError

FORBIDDEN: Final = 403

_EVERYBODY: Final = re.compile(
    r"/api/(health|login|logout|me|openapi\.json|events|uploads|models|tools|profiles|usage)(/.*)?"
    r"|/api/(sessions|tags|exports|shares|memory|approvals)(/.*)?"
    r"|/v1/.*"
)
_READ_ONLY: Final = re.compile(r"/api/setup|/api/trust/folder")
"""What named users may read and not change."""


def check_role(caller: Caller, method: str, path: str) -> None:
    """Raise `ProblemError` if this caller may not use this route."""
    if not caller.user or _EVERYBODY.fullmatch(path):
        return
    if method == "GET" and _READ_ONLY.fullmatch(path):
        return
    raise ProblemError(
        FORBIDDEN,
        "only_for_the_owner",
        "Only the owner of this server may do this",
        "ask the person who runs this Keryx",
    )
