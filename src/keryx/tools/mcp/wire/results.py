"""Turns the result of an MCP tool into parts of a message, or into fields for a script."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable
from typing import Any, Final

import mcp_types
import msgspec
from mcp.client.session import ClientSession

from keryx.errors import ToolFailedError
from keryx.messages import Image, Json, Part, Text, well_formed
from keryx.tools.mcp.schemas import ArgumentsCheck

MOST_BLOCKS: Final = 100
LONGEST_TEXT: Final = 400_000
"""Characters of one text. The executor shortens results for models further."""
LARGEST_IMAGE: Final = 8 * 1024 * 1024
IMAGE_TYPES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")

Keep = Callable[[bytes], Awaitable[str]]
"""Stores a blob of the session; returns its name."""


def bound_checks(session: ClientSession) -> None:
    """Let the session check results as arguments are checked, within limits.

    The package checks them with the patterns and references of the server, which may take for
    ever, in the loop of the host. It has no setting for that.
    """

    async def check(name: str, result: mcp_types.CallToolResult) -> None:
        schema = session._tool_output_schemas.get(name)  # pyright: ignore[reportPrivateUsage]
        if schema is None:
            return
        if (
            result.structured_content is None
            and "structured_content" not in result.model_fields_set
        ):
            raise ToolFailedError(f"{name} promises structured content, and returned none")
        if problems := ArgumentsCheck(schema).problems(result.structured_content):
            raise ToolFailedError(
                f"{name} returned what it does not promise: {'; '.join(problems)}"
            )

    session.validate_tool_result = check


async def parts_of(result: mcp_types.CallToolResult, keep: Keep) -> list[Part]:
    """Return the result for a model."""
    parts: list[Part] = [await _part(block, keep) for block in result.content[:MOST_BLOCKS]]
    if len(result.content) > MOST_BLOCKS:
        parts.append(Text(f"[{len(result.content) - MOST_BLOCKS} more blocks are left out]"))
    if result.structured_content is not None and not _says_the_same(result):
        parts.append(Json(msgspec.Raw(msgspec.json.encode(result.structured_content))))
    return parts or [Text("[no output]")]


def fields_of(result: mcp_types.CallToolResult) -> dict[str, Any]:
    """Return the result for a script: the texts joined, all blocks, and the structured content."""
    blocks = [
        block.model_dump(mode="json", by_alias=True, exclude_none=True)
        for block in result.content[:MOST_BLOCKS]
    ]
    return {
        "text": text_of(result),
        "content": blocks,
        "structured": result.structured_content,
    }


def text_of(result: mcp_types.CallToolResult) -> str:
    """Return the texts of a result, one after the other."""
    texts = [block.text for block in result.content if isinstance(block, mcp_types.TextContent)]
    return well_formed("\n".join(texts))[:LONGEST_TEXT]


async def _part(block: mcp_types.ContentBlock, keep: Keep) -> Part:
    match block:
        case mcp_types.TextContent():
            return _text(block.text)
        case mcp_types.ImageContent():
            return await _image(block, keep)
        case mcp_types.EmbeddedResource(resource=mcp_types.TextResourceContents() as resource):
            return _text(f"[{resource.uri}]\n{resource.text}")
        case mcp_types.EmbeddedResource(resource=resource):
            kind = resource.mime_type or "data"
            return Text(f"[{resource.uri}: {kind}, which cannot be shown]")
        case mcp_types.ResourceLink():
            return Text(f"[resource {block.name}: {block.uri}]")
        case mcp_types.AudioContent():
            return Text(f"[{block.mime_type}, which cannot be shown]")


def _text(text: str) -> Text:
    text = well_formed(text)
    if len(text) <= LONGEST_TEXT:
        return Text(text)
    left_out = len(text) - LONGEST_TEXT
    return Text(f"{text[:LONGEST_TEXT]}\n[… {left_out} characters left out …]")


async def _image(block: mcp_types.ImageContent, keep: Keep) -> Part:
    if block.mime_type not in IMAGE_TYPES:
        return Text(f"[an image of the type {block.mime_type}, which cannot be shown]")
    try:
        data = base64.b64decode(block.data, validate=True)
    except binascii.Error:
        return Text("[an image that cannot be decoded]")
    if len(data) > LARGEST_IMAGE:
        return Text(f"[an image of {len(data)} bytes, which is too large to be shown]")
    return Image(await keep(data), block.mime_type)


def _says_the_same(result: mcp_types.CallToolResult) -> bool:
    """Return whether a text holds the structured content too, as servers should send it."""
    for block in result.content:
        if isinstance(block, mcp_types.TextContent):
            try:
                value = msgspec.json.decode(block.text)
            except (ValueError, RecursionError):
                continue
            content = result.structured_content
            if content in (value, {"result": value}):
                return True
    return len(result.content) == 1 and result.structured_content == {"result": text_of(result)}
