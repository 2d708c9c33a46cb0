"""One tool of an MCP server as a tool of Keryx."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol, cast

import msgspec

from keryx.errors import InvalidArgumentsError, OutcomeUnknownError
from keryx.ports.effects import Effects, uses
from keryx.ports.tool import Isolation, Replay, Risk
from keryx.ports.tool_context import ToolContext
from keryx.tools.mcp.listing import ListedTool, Listing
from keryx.tools.mcp.schemas import ArgumentsCheck, normalized, problem_of

PREFIX: Final = "mcp_"
LONGEST_NAME: Final = 64
"""Characters of a tool's name that all model providers accept."""
ARGUMENTS_LIMIT: Final = 4 * 1024 * 1024
LONGEST_PREVIEW: Final = 100
_REFUSED: Final = re.compile(r"[^a-zA-Z0-9_-]+")


class Sent:
    """Whether a call has gone to its server."""

    is_sent = False


class Caller(Protocol):
    """What a tool needs of its server."""

    @property
    def name(self) -> str: ...

    @property
    def timeout(self) -> float: ...

    async def call(self, tool: str, args: dict[str, Any], context: ToolContext, sent: Sent) -> Any:
        """Call a tool with these arguments, and note when it was sent."""
        ...


class McpTool:
    """A tool of an MCP server."""

    isolation: Isolation = "loop"
    replay: Replay = "never"
    container = False

    def __init__(self, name: str, listed: ListedTool, server: Caller) -> None:
        self.name = name
        self.server = server.name
        self.listed = listed
        title = f"[{server.name}] "
        self.description = title + (listed.description.strip() or listed.name)
        self.parameters: Mapping[str, Any] = normalized(listed.schema)
        self.size = len(msgspec.json.encode((name, self.description, self.parameters)))
        """About how many bytes of a request it takes to describe it to a model."""
        self._server = server
        self._check = ArgumentsCheck(self.parameters)

    def __repr__(self) -> str:
        return f"<tool {self.name}>"

    @property
    def timeout(self) -> float | None:
        return self._server.timeout

    def parse(self, arguments: bytes | str | Mapping[str, Any]) -> dict[str, Any]:
        """Check the arguments against the server's schema; the server checks them again."""
        if isinstance(arguments, bytes | str):
            if len(arguments) > ARGUMENTS_LIMIT:
                raise self._error(f"they have more than {ARGUMENTS_LIMIT} characters; send less")
            try:
                value: object = msgspec.json.decode(arguments if arguments.strip() else "{}")
            except (ValueError, RecursionError) as error:
                raise self._error(f"they are not JSON: {error}") from error
        else:
            value = dict(arguments)
        if not isinstance(value, dict):
            raise self._error("they must be a JSON object")
        fields = cast("dict[str, Any]", value)
        if problems := self._check.problems(fields):
            raise self._error("; ".join(problems))
        return fields

    def effects(self, args: Any) -> Effects:
        del args
        return uses(f"mcp {self.server}", writes=not self.listed.read_only)

    def risk(self, args: Any, workspace: Path) -> Risk:
        """Judge by what the server says of its tool; it knows best, and may be wrong."""
        del args, workspace
        listed = self.listed
        if listed.read_only:
            level = "low" if listed.open_world else "none"
            return Risk(level, f"{self.server} says that it only reads", changes=False)
        if listed.destructive:
            return Risk("high", f"{self.server} says that it may destroy something", changes=True)
        return Risk("low", f"it runs on the MCP server {self.server}", changes=True)

    def preview(self, args: Any) -> str:
        texts = [value for value in cast("dict[str, Any]", args).values() if isinstance(value, str)]
        line = next((text.strip().splitlines()[0] for text in texts if text.strip()), "")
        line = "".join(character if character.isprintable() else " " for character in line)
        return line[:LONGEST_PREVIEW]

    async def invoke(self, args: Any, context: ToolContext) -> Any:
        sent = Sent()
        try:
            return await self._server.call(self.listed.name, args, context, sent)
        except asyncio.CancelledError:
            # The protocol has no answer to a cancel, so nobody knows whether the server goes on.
            if not sent.is_sent or self.listed.read_only or not context.token.is_cancelled:
                raise
            raise OutcomeUnknownError(
                f"the MCP server {self.server} was told to stop, but servers do not say whether "
                "they did: check what it has done before you call it again"
            ) from None

    def _error(self, text: str) -> InvalidArgumentsError:
        return InvalidArgumentsError(f"arguments of `{self.name}`: {text}")


def tool_name(server: str, tool: str) -> str:
    """Return the name that models use: within the limits of all providers."""
    name = PREFIX + _REFUSED.sub("_", f"{server}_{tool}")
    if len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(tool.encode(errors="replace")).hexdigest()[:8]
    return f"{name[: LONGEST_NAME - 9]}_{digest}"


def checked_listing(listing: Listing) -> Listing:
    """Return the listing with the tools that can be used. In a thread: it may take a second."""
    problems = list(listing.problems)
    tools: list[ListedTool] = []
    for tool in listing.tools:
        problem = problem_of(tool.schema)
        if problem is None:
            tools.append(tool)
        else:
            problems.append(
                f"the tool {tool.name!r} is left out: its schema is not valid: {problem}; "
                "tell whoever maintains the server"
            )
    return msgspec.structs.replace(listing, tools=tuple(tools), problems=tuple(problems))


def build_tools(server: Caller, listed: Iterable[ListedTool]) -> tuple[list[McpTool], list[str]]:
    """Return the tools, and the problems with the names of those that are left out."""
    tools: dict[str, McpTool] = {}
    problems: list[str] = []
    for entry in listed:
        name = tool_name(server.name, entry.name)
        first = tools.get(name)
        if first is None:
            tools[name] = McpTool(name, entry, server)
        else:
            problems.append(
                f"the tool {entry.name!r} is left out: models would call it {name!r}, like "
                f"{first.listed.name!r}; rename one of them in the server"
            )
    return [*tools.values()], problems
