"""Reads a page of a listing. One tool that is described wrongly does not hide the others."""

from __future__ import annotations

from typing import Any, Final, cast

import mcp_types
from mcp.client import Client
from mcp.shared.dispatcher import CallOptions
from pydantic import ValidationError

from keryx.errors import ToolFailedError

METHOD: Final = "tools/list"


async def list_page(
    client: Client, cursor: str | None
) -> tuple[mcp_types.ListToolsResult, list[str]]:
    """Return a page, and what is wrong with the tools that are left out of it."""
    try:
        return await client.list_tools(cursor=cursor), []
    except ValidationError:
        return await _list_valid(client, cursor)


async def _list_valid(
    client: Client, cursor: str | None
) -> tuple[mcp_types.ListToolsResult, list[str]]:
    """Ask again without the package's check of the whole page, and check each tool by itself.

    The package has no public way to do that.
    """
    session = client.session
    options: CallOptions = {}
    request: dict[str, Any] = {"method": METHOD, "params": {"cursor": cursor} if cursor else {}}
    session._stamp(request, options)  # pyright: ignore[reportPrivateUsage]
    answer = await session._dispatcher.send_raw_request(METHOD, request["params"], options)  # pyright: ignore[reportPrivateUsage]
    entries: object = answer.get("tools")
    if not isinstance(entries, list):
        raise ToolFailedError("the server lists no tools: its answer has no array `tools`")
    tools: list[mcp_types.Tool] = []
    problems: list[str] = []
    for entry in cast("list[object]", entries):
        try:
            tools.append(mcp_types.Tool.model_validate(entry, by_name=False))
        except ValidationError as error:
            name = cast("dict[str, object]", entry).get("name") if isinstance(entry, dict) else None
            fault = error.errors()[0]
            problems.append(
                f"the tool {str(name)[:80]!r} is left out: its description is not valid "
                f"({fault['msg']}); tell whoever maintains the server"
            )
    next_cursor: object = answer.get("nextCursor")
    page = mcp_types.ListToolsResult(
        tools=tools, next_cursor=next_cursor if isinstance(next_cursor, str) else None
    )
    session._absorb_tool_listing(page, complete=page.next_cursor is None and cursor is None)  # pyright: ignore[reportPrivateUsage]
    return page, problems
