"""Reads the answers of servers that make or read media. Pure."""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec

from keryx.decoding import decode_json
from keryx.errors import ToolFailedError
from keryx.events import Usage
from keryx.ports.model_access import CallEndpoint, EndpointAnswer

T = TypeVar("T")

_Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]


class _Tokens(msgspec.Struct, frozen=True):
    input_tokens: _Count
    output_tokens: _Count


class _WithUsage(msgspec.Struct, frozen=True):
    usage: _Tokens


def decode(endpoint: CallEndpoint, function: str, answer: EndpointAnswer, type_: type[T]) -> T:
    """Return the answer as this type; `ToolFailedError` if it is something else."""
    try:
        return decode_json(answer.body, type_)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        is_json = isinstance(error, msgspec.ValidationError)
        content = "JSON that is no answer" if is_json else answer.content_type or "no JSON"
        raise unusable(endpoint, function, f"{content} ({error})") from error


def usage_of(answer: EndpointAnswer) -> Usage | None:
    """Return the tokens that the server counted; None if it counted none."""
    try:
        tokens = decode_json(answer.body, _WithUsage).usage
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # many servers count nothing, or seconds
    return Usage(input_tokens=tokens.input_tokens, output_tokens=tokens.output_tokens)


def unusable(endpoint: CallEndpoint, function: str, content: str) -> ToolFailedError:
    """Return the error for an answer that is not of this API."""
    return ToolFailedError(
        f"{endpoint.name} sent {content}; check that {endpoint.address} offers {function}, and "
        "that the model is one for it"
    )
