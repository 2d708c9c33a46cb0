"""A server made with the `mcp` package: `python -m tests.tools.mcp.example_server [PORT]`.

Without a port it speaks over stdin and stdout, with one over streamable HTTP.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Annotated

from mcp.server.elicitation import ElicitationResult
from mcp.server.mcpserver import Context, Elicit, Image, MCPServer, Resolve, Sample
from mcp_types import CreateMessageResult, SamplingMessage, TextContent, ToolAnnotations
from pydantic import BaseModel

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)

server = MCPServer("example", instructions="An example.")


class Sum(BaseModel):
    """A structured result."""

    total: int


class Pet(BaseModel):
    """What is asked of the person."""

    name: str
    age: int


@server.tool()
def add(a: int, b: int) -> Sum:
    """Add two numbers."""
    return Sum(total=a + b)


@server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
def whoami() -> str:
    """Return the process id, and a variable."""
    return f"{os.getpid()} {os.environ.get('EXAMPLE', '-')} {os.environ.get('HOST_SECRET', '-')}"


@server.tool(annotations=ToolAnnotations(destructive_hint=True))
def wipe() -> str:
    """Destroy everything."""
    return "wiped"


@server.tool()
def picture() -> Image:
    """Return a picture."""
    return Image(data=PIXEL, format="png")


@server.tool()
def fail(why: str) -> str:
    """Fail for that reason."""
    raise ValueError(why)


@server.tool()
async def count(to: int, context: Context) -> str:
    """Count, with progress."""
    for number in range(1, to + 1):
        await context.report_progress(number, to, f"number {number}")
    return "counted"


@server.tool()
async def hang(folder: str, context: Context) -> str:
    """Say that it hangs, and when it was cancelled, by files in that folder."""
    await context.report_progress(0, None, "hanging")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        with open(os.path.join(folder, "cancelled"), "w") as file:  # noqa: ASYNC230, PTH123, PTH118 (a test's own file)
            file.write("yes")
        raise
    return "never"


def which_pet() -> Elicit[Pet]:
    return Elicit("Which pet?", Pet)


def something() -> Sample:
    text = TextContent(type="text", text="Say something")
    return Sample([SamplingMessage(role="user", content=text)], max_tokens=50)


@server.tool()
def ask_pet(pet: Annotated[ElicitationResult[Pet], Resolve(which_pet)]) -> str:
    """Ask the person about a pet."""
    if pet.action != "accept":
        return f"the person said: {pet.action}"
    return f"{pet.data.name} is {pet.data.age}"


@server.tool()
def ask_model(reply: Annotated[CreateMessageResult, Resolve(something)]) -> str:
    """Ask the client's model."""
    assert isinstance(reply.content, TextContent)
    return f"the model said: {reply.content.text}"


@server.tool()
async def grow(context: Context) -> str:
    """Get another tool."""
    server.add_tool(lambda: "grown", name="grown", description="A new tool.")
    await context.notify_tools_changed()
    return "grew"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run()
