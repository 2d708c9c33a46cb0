"""The requests of the API v3, as its public schemas have them; unknown fields are refused."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

NAME = r"^[a-zA-Z0-9_-]+$"
MAX_TOKENS = 8_192

Name = Annotated[str, Field(min_length=1, max_length=512, pattern=NAME)]


def _without_nul(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "")
    if isinstance(value, dict):
        return {_without_nul(key): _without_nul(entry) for key, entry in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return value


def _few_tokens(text: str) -> str:
    if len(text.encode()) / 4 > MAX_TOKENS:  # the real one counts with a tokenizer
        raise ValueError(f"Content exceeds maximum embedding token limit of {MAX_TOKENS}")
    return text


def _shallow(value: dict[str, Any]) -> dict[str, Any]:
    if len(value) > 100:
        raise ValueError("Metadata exceeds maximum of 100 top-level keys")
    return _without_nul(value)


Text = AfterValidator(_without_nul)
Metadata = Annotated[dict[str, Any], AfterValidator(_shallow)]


class Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class PeerConfig(Shape):
    observe_me: bool | None = None


class SessionPeerConfig(PeerConfig):
    observe_others: bool | None = None


class WorkspaceCreate(Shape):
    id: Name
    metadata: Metadata = {}
    configuration: dict[str, Any] = {}


class PeerCreate(Shape):
    id: Name
    metadata: Metadata | None = None
    configuration: PeerConfig | None = None


class SessionCreate(Shape):
    id: Name
    metadata: Metadata | None = None
    peers: dict[Name, SessionPeerConfig] | None = None
    configuration: dict[str, Any] | None = None


class MessageCreate(Shape):
    content: Annotated[str, Field(max_length=25_000), Text]
    peer_id: Name
    metadata: Metadata | None = None
    created_at: Annotated[datetime | None, Field(strict=False)] = None


class MessageBatch(Shape):
    messages: Annotated[list[MessageCreate], Field(min_length=1, max_length=100)]


class ConclusionCreate(Shape):
    content: Annotated[
        str, Field(min_length=1, max_length=65_535), Text, AfterValidator(_few_tokens)
    ]
    observer_id: str
    observed_id: str
    session_id: str | None = None


class ConclusionBatch(Shape):
    conclusions: Annotated[list[ConclusionCreate], Field(min_length=1, max_length=100)]


class Listing(Shape):
    filters: dict[str, Any] | None = None


class ConclusionQuery(Shape):
    query: Annotated[str, AfterValidator(_few_tokens)]
    top_k: Annotated[int, Field(ge=1, le=100)] = 10
    distance: Annotated[float, Field(ge=0, le=1)] | None = None
    filters: dict[str, Any] | None = None


class MessageSearch(Shape):
    query: Annotated[str, Text]
    filters: dict[str, Any] | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 10


class Representation(Shape):
    session_id: str | None = None
    filters: dict[str, Any] | None = None
    target: str | None = None
    search_query: str | None = None
    search_top_k: Annotated[int, Field(ge=1, le=100)] | None = None
    search_max_distance: Annotated[float, Field(ge=0, le=1)] | None = None
    include_most_frequent: bool | None = None
    max_conclusions: Annotated[int, Field(ge=1, le=100)] | None = 25


class Pages(BaseModel):
    """The parameters of a listing."""

    model_config = ConfigDict(extra="forbid")
    page: Annotated[int, Field(ge=1)] = 1
    size: Annotated[int, Field(ge=1, le=100)] = 50
    reverse: bool = False
