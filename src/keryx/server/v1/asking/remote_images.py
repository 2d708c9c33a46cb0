"""Images that a request names by an address: they are fetched before its turn begins."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from keryx.errors import ToolFailedError
from keryx.server.v1.api_errors import invalid
from keryx.server.v1.asking.prompts import image_url
from keryx.tools.files import content
from keryx.tools.public_http import PublicHttpClients
from keryx.tools.web.fetching import FetchLimits, fetch

MOST_IMAGES: Final = 20
"""Of one request, with those of earlier messages that it sends again."""
IMAGE_LIMITS: Final = FetchLimits(size=20 * 1024 * 1024)

Part = dict[str, Any]


async def load_images(
    entries: Iterable[Mapping[str, Any]], place: str, allow_private: Sequence[str]
) -> None:
    """Replace the addresses of images in these messages or items by what is there.

    Only public addresses are read, and those hosts of `allow_private`. `ApiError` names the image
    that could not be loaded.
    """
    images = list(_addressed(entries, place))
    if not images:
        return
    if len(images) > MOST_IMAGES:
        text = f"A request may name {MOST_IMAGES} images by address; send the others as data URLs"
        raise invalid(text, images[MOST_IMAGES][1])
    clients = PublicHttpClients()
    try:
        # A task group: the first image that fails ends the requests for the others.
        async with asyncio.TaskGroup() as group:
            for part, param, url in images:
                group.create_task(_load(clients, part, param, url, allow_private))
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    finally:
        await clients.close()


def _addressed(entries: Iterable[Mapping[str, Any]], place: str) -> Iterator[tuple[Part, str, str]]:
    """Yield each image that has an address: its part, the part's place in the request, and it."""
    for number, entry in enumerate(entries):
        parts = entry.get("content")
        for index, part in enumerate(
            cast("list[object]", parts) if isinstance(parts, list) else ()
        ):
            url = image_url(part)
            if url is not None and url.lower().startswith(("http://", "https://")):
                yield cast("Part", part), f"{place}[{number}].content[{index}].image_url", url


async def _load(
    clients: PublicHttpClients, part: Part, param: str, url: str, allow_private: Sequence[str]
) -> None:
    try:
        fetched = await fetch(await clients.get(allow_private), url, IMAGE_LIMITS, media=True)
    except ToolFailedError as error:
        raise invalid(f"The image could not be loaded: {error}", param) from error
    media_type = content.image_type(fetched.body)
    if fetched.truncated:
        text = f"The image is larger than {content.sized(IMAGE_LIMITS.size)}; send a smaller one"
        raise invalid(text, param)
    if media_type is None:
        raise invalid("There is no PNG, JPEG, GIF or WebP image at this address", param)
    data = base64.b64encode(fetched.body).decode()
    part["image_url"] = f"data:{media_type};base64,{data}"
