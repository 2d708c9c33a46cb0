"""Parameters that several routes share: in paths, queries and headers."""

from __future__ import annotations

from typing import Annotated, Final

from litestar.di import NamedDependency
from litestar.params import HeaderParameter, PathParameter, QueryParameter

from keryx.server.access.auth import Caller
from keryx.server.access.forwarded import Outside
from keryx.server.schemas import HASH_PATTERN, ID_PATTERN
from keryx.server.service import Service
from keryx.server.users.user_hosts import UserHosts

TheService = NamedDependency[Service]
TheUserHosts = NamedDependency[UserHosts]
TheCaller = NamedDependency[Caller]
TheOutside = NamedDependency[Outside]
SessionId = Annotated[str, PathParameter(pattern=ID_PATTERN, description="The session.")]
MessageId = Annotated[
    str, PathParameter(pattern=ID_PATTERN, description="A message of the session.")
]
TurnId = Annotated[str, PathParameter(pattern=ID_PATTERN, description="A turn of the session.")]
CallId = Annotated[str, PathParameter(pattern=ID_PATTERN, description="A call of the session.")]
AskedId = Annotated[str, PathParameter(pattern=ID_PATTERN, description="What waits for an answer.")]
RuleId = Annotated[
    str, PathParameter(pattern=ID_PATTERN, description="A rule that an answer with `always` made.")
]
BlobHash = Annotated[str, PathParameter(pattern=HASH_PATTERN, description="The blob's SHA-256.")]
Limit = Annotated[int, QueryParameter(ge=1, le=500, description="How many at most.")]
Before = Annotated[
    int | None, QueryParameter(ge=0, le=2**53, description="`next` of the page before this one.")
]
After = Annotated[
    int | None,
    QueryParameter(ge=0, le=2**53, description="`next` of the page that this one follows."),
]
IdempotencyKey = Annotated[
    str | None,
    HeaderParameter(
        name="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="The same as `key` in the body: what comes twice with it takes effect once.",
    ),
]

PAGE: Final = 50
