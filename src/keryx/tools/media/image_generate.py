"""`image_generate`: a model makes images, which become files of the workspace."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from keryx.errors import ToolFailedError
from keryx.messages import Image, Text
from keryx.ports.effects import Effects
from keryx.ports.model_access import CallEndpoint, EndpointAnswer
from keryx.ports.tool import Risk, Tool
from keryx.ports.tool_context import ToolContext
from keryx.tools.files.content import image_type, sized
from keryx.tools.files.reading import MAX_IMAGE
from keryx.tools.function import tool
from keryx.tools.media.answers import decode, unusable, usage_of
from keryx.tools.media.saving import Destination, Medium, fields
from keryx.tools.web.fetching import FetchLimits, check_url, fetch

FUNCTION: Final = "images/generations"
MOST_IMAGES: Final = 4
MAX_BYTES: Final = 20 * 1024 * 1024
"""Of one image."""
# Base64 has four characters for three bytes; the rest of the answer is short.
_MAX_ENCODED: Final = MAX_BYTES // 3 * 4 + 64 * 1024
LONGEST_PROMPT: Final = 32_000
LIMITS: Final = FetchLimits(size=MAX_BYTES)
DESTINATION: Final = Destination("images", "image", (".png", ".jpg", ".jpeg", ".webp", ".gif"))
_SIZE: Final = re.compile(r"auto|\d{2,5}x\d{2,5}")

Count = Annotated[int, msgspec.Meta(ge=1, le=MOST_IMAGES)]


class _Item(msgspec.Struct, frozen=True):
    b64_json: str | None = None
    url: str | None = None


class _Answer(msgspec.Struct, frozen=True):
    data: list[_Item]


def image_tool(allow_private: Sequence[str] = ()) -> Tool:
    """Return the tool; `allow_private` are private hosts that may be read."""

    @tool(effects=_effects, risk=_risk, aliases=("image_gen",))
    async def image_generate(
        prompt: str,
        context: ToolContext,
        size: str | None = None,
        n: Count = 1,
        path: str | None = None,
    ) -> Any:
        """Make images from a description: saved as files of the workspace, and shown to you.

        Args:
            prompt: What the image shows, and in which style.
            size: Width and height, such as 1024x1024; the model's usual size if left out.
            n: How many images.
            path: The new file; a fresh name in `images` if left out, numbered if n is over 1.
        """
        _check(prompt, size)
        endpoint = context.endpoint("image")
        await context.to_thread(DESTINATION.check, context, path, n)
        request = {"model": endpoint.model, "prompt": prompt, "n": n}
        body = msgspec.json.encode(request if size is None else {**request, "size": size})
        answer = await endpoint.post(
            FUNCTION, body, content_type="application/json", limit=n * _MAX_ENCODED
        )
        if (usage := usage_of(answer)) is not None:
            endpoint.log_usage(usage)
        items = await context.to_thread(_items, endpoint, answer, n)
        images = [await _image(item, endpoint, context, tuple(allow_private)) for item in items]
        names = await context.to_thread(DESTINATION.save, context, images, path)
        return await _result(context, names, images)

    return image_generate


def _effects(args: Any) -> Effects:
    return DESTINATION.effects(args.path, args.n)


def _risk(args: Any, workspace: Path) -> Risk:
    return DESTINATION.risk(args.path, args.n, workspace)


def _check(prompt: str, size: str | None) -> None:
    if not prompt.strip():
        raise ToolFailedError("the prompt is empty; say what the image shows")
    if len(prompt) > LONGEST_PROMPT:
        raise ToolFailedError(
            f"the prompt has more than {LONGEST_PROMPT:,} characters; make it shorter"
        )
    if size is not None and _SIZE.fullmatch(size) is None:
        raise ToolFailedError(f"{size!r:.40} is not a size; write one such as 1024x1024")


def _items(endpoint: CallEndpoint, answer: EndpointAnswer, n: int) -> list[Medium | str]:
    """Return the images, or the addresses where they are."""
    items = decode(endpoint, FUNCTION, answer, _Answer).data[:n]
    if not items:
        raise ToolFailedError(
            f"{endpoint.name} made no image, and did not say why; change the prompt"
        )
    return [_item(endpoint, item) for item in items]


def _item(endpoint: CallEndpoint, item: _Item) -> Medium | str:
    if item.b64_json is None:
        if item.url is None:
            raise unusable(endpoint, FUNCTION, "an image without data and address")
        return item.url
    try:
        data = base64.b64decode(item.b64_json, validate=True)
    except (binascii.Error, ValueError) as error:
        raise unusable(endpoint, FUNCTION, f"an image that is not base64 ({error})") from error
    return _medium(endpoint, data)


def _medium(endpoint: CallEndpoint, data: bytes) -> Medium:
    media_type = image_type(data)
    if media_type is None:
        raise unusable(endpoint, FUNCTION, "an image that is not PNG, JPEG, WebP or GIF")
    return Medium(data, media_type)


async def _image(
    item: Medium | str,
    endpoint: CallEndpoint,
    context: ToolContext,
    allow_private: tuple[str, ...],
) -> Medium:
    if isinstance(item, Medium):
        return item
    # The server's own host was chosen by the user; all others must be public, redirects included.
    client = await context.public_http((*allow_private, endpoint.host))
    try:
        fetched = await fetch(client, check_url(item), LIMITS, media=True)
    except ToolFailedError as error:
        raise ToolFailedError(
            f"{endpoint.name} made an image, but it could not be fetched: {error}"
        ) from error
    if fetched.truncated:
        raise ToolFailedError(
            f"the image of {endpoint.name} is larger than {sized(MAX_BYTES)}; ask for a smaller one"
        )
    return _medium(endpoint, fetched.body)


async def _result(context: ToolContext, names: Sequence[str], images: Sequence[Medium]) -> Any:
    if context.nested:
        return {"images": [fields(*pair) for pair in zip(names, images, strict=True)]}
    parts: list[Image | Text] = []
    lines: list[str] = []
    for name, image in zip(names, images, strict=True):
        lines.append(f"[saved as {name}, {sized(len(image.data))}]")
        if len(image.data) <= MAX_IMAGE:
            blob = await context.files.keep(image.data)
            parts.append(Image(blob, image.media_type, Path(name).name))
    return [*parts, Text("\n".join(lines))]
