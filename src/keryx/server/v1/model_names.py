"""The names under which clients ask for an agent: `keryx`, or the agent with another model."""

from __future__ import annotations

from typing import Any, Final

from keryx.app.host_client import HostClient
from keryx.server.problems import NOT_FOUND
from keryx.server.v1.api_errors import ApiError, invalid

AGENT: Final = "keryx"
"""The agent as it is configured, with its default model."""
CREATED: Final = 1_735_689_600
"""When models were made is not known; clients want a number."""


def names(host_client: HostClient) -> list[str]:
    """Return all names that a request may use."""
    return list(dict.fromkeys([AGENT, *host_client.models.names()]))


def model_of(host_client: HostClient, name: str) -> str:
    """Return the model that this name stands for; `ApiError` if there is none."""
    if name not in names(host_client):
        listed = ", ".join(names(host_client)[:20])
        raise ApiError(
            NOT_FOUND,
            f"The model {name[:80]!r} does not exist; use one of: {listed}",
            param="model",
            code="model_not_found",
        )
    model = host_client.models.default if name == AGENT else name
    if not model:
        raise invalid(
            "Keryx has no model yet; open its page and choose one, or run `keryx doctor`",
            "model",
            "model_not_configured",
        )
    return model


def described(name: str) -> dict[str, Any]:
    """Return a model as a client reads it."""
    owner = name.partition(":")[0]
    return {"id": name, "object": "model", "created": CREATED, "owned_by": owner}
