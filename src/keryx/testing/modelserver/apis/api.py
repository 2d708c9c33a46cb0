"""What the server needs of each API, and what they share: refusals, strict types, signatures."""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Protocol, TypeVar, cast

import msgspec

from keryx.decoding import convert, decode_json
from keryx.testing.modelserver.script import Reply

Name = Annotated[str, msgspec.Meta(pattern="^[a-zA-Z0-9_-]{1,64}$")]
Id = Annotated[str, msgspec.Meta(min_length=1)]
T = TypeVar("T")


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    """A struct that refuses unknown fields."""


_NOT_AT_ROOT = frozenset({"anyOf", "oneOf", "allOf", "not", "enum"})


class RefusedError(Exception):
    """The API's refusal, as an HTTP status and an error object."""

    def __init__(
        self,
        message: str,
        status: int = 400,
        code: str | int | None = None,
        type_: str = "invalid_request_error",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.type = type_


class Accepted(msgspec.Struct, frozen=True):
    """What the server needs to know of a request that was accepted."""

    model: str
    streams: bool = True
    with_usage: bool = True
    thinks: bool = True
    prefix: object = None
    """What signed thoughts of the reply are bound to."""


class Signatures:
    """Signs what a reply must be sent back with. Another server, API or model signs differently."""

    def __init__(self, api: str) -> None:
        self._api = api
        self._secret = secrets.token_hex(8)
        self._with_thinking: set[str] = set()
        self._bound: set[tuple[str, str]] = set()

    def sign(self, model: str, content: str) -> str:
        text = f"{self._secret} {self._api} {model} {content}"
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    def bind(self, signature: str, prefix: object) -> None:
        """Bind what was signed to all that stands before it."""
        self._bound.add((signature, _canonical(prefix)))

    def is_bound(self, signature: str, prefix: object) -> bool:
        return (signature, _canonical(prefix)) in self._bound

    def remember(self, call: object) -> None:
        """Remember a call that was made with thinking, by its content."""
        self._with_thinking.add(_canonical(call))

    def knows(self, call: object) -> bool:
        return _canonical(call) in self._with_thinking


def _canonical(value: object) -> str:
    return msgspec.json.encode(value, order="deterministic").decode()


class Request(msgspec.Struct, frozen=True):
    """A request as it came."""

    raw: bytes
    headers: Mapping[str, str]
    query: Mapping[str, str]
    model: str
    """The model that the path names; empty if it names none."""


class Api(Protocol):
    """One API: its rules and its answers."""

    name: str
    path: str
    """The path of the route that streams, behind the host."""
    folder: str
    """The path that an adapter gets as a part of its address."""
    lead: int
    """How many events come before the first that has content."""

    def key(self, headers: Mapping[str, str]) -> str:
        """Return the key of the request; empty if there is none."""
        ...

    def check(self, request: Request, models: Sequence[str]) -> Accepted:
        """Raise `RefusedError` if the request breaks a rule."""
        ...

    def frames(self, reply: Reply, number: int, accepted: Accepted) -> Iterator[bytes]:
        """Yield the events of the stream, with their line ends."""
        ...

    def whole(self, reply: Reply, number: int, accepted: Accepted) -> bytes: ...

    def error(self, refused: RefusedError) -> bytes: ...

    def error_frame(self, reply: Reply) -> bytes:
        """Return the event that says that the rest of the reply will not come."""
        ...

    def models(self, names: Sequence[str]) -> Any:
        """Return the list of models."""
        ...


def decoded(raw: bytes, kind: type[T]) -> T:
    """Return the body; `RefusedError` says what the API does not take."""
    try:
        return decode_json(raw, kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RefusedError(f"the body is not what the API takes: {error}") from None


def converted(value: object, kind: type[T], at: str) -> T:
    """Return a part of the body that is told by more than one tag."""
    try:
        return convert(value, kind)
    except msgspec.ValidationError as error:
        raise RefusedError(f"{at} is not what the API takes: {error}") from None


def check_model(model: str, models: Sequence[str]) -> None:
    if model not in models:
        message = f"The model `{model}` does not exist or you do not have access to it."
        raise RefusedError(message, 404, "model_not_found")


def check_tools(names: Sequence[str], schemas: Sequence[Mapping[str, Any] | None]) -> None:
    if len(set(names)) != len(names):
        raise RefusedError(f"tool names must be unique: {sorted(names)}")
    for name, schema in zip(names, schemas, strict=True):
        if schema is not None and schema.get("type") != "object":
            raise RefusedError(f"Invalid schema for function '{name}': its type must be object")
        if schema is not None and not _NOT_AT_ROOT.isdisjoint(schema):
            raise RefusedError(f"Invalid schema for function '{name}': it has a choice at its root")


def check_choice(name: str, names: Sequence[str]) -> None:
    """Refuse the choice of a tool that the request does not have."""
    if name not in names:
        raise RefusedError(f"Tool choice '{name}' not found in 'tools' parameter.")


def check_closed(schema: object, at: str = "schema") -> None:
    """Refuse a schema with an object that may have more fields than it names."""
    if isinstance(schema, list):
        for part in cast("list[object]", schema):
            check_closed(part, at)
    elif isinstance(schema, dict):
        fields = cast("dict[str, object]", schema)
        if fields.get("type") == "object" and fields.get("additionalProperties") is not False:
            raise RefusedError(f"{at}: 'additionalProperties' must be false for every object")
        for part in fields.values():
            check_closed(part, at)


def data_frame(value: object) -> bytes:
    return b"data: %b\n\n" % msgspec.json.encode(value)


def named_frame(event: Mapping[str, Any]) -> bytes:
    """Return an event whose name stands before its data too."""
    return b"event: %b\n%b" % (event["type"].encode(), data_frame(event))


def cut(text: str, size: int) -> Iterator[str]:
    for start in range(0, len(text), size):
        yield text[start : start + size]
