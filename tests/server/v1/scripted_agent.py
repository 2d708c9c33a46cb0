"""A host whose scripted model answers by what it is asked, and OpenAI's own client of it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI

from keryx import NO_EFFECTS, tool
from keryx.events import Usage
from keryx.messages import AssistantMessage, Text, ToolMessage, UserMessage
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply, history_of
from keryx.ports.model import Model, ModelRequest
from keryx.ports.tool import Risk
from tests.server.served_host import Gate, ServedHost, served_host

WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "description": "The weather in a city",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}
CHAT_TOOL: Any = {"type": "function", "function": WEATHER}
RESPONSE_TOOL: Any = {"type": "function", **WEATHER, "strict": False}
WORDS = " ".join(f"word{number}" for number in range(200))
USAGE = Usage(input_tokens=11, output_tokens=7, cached_tokens=3, reasoning_tokens=2)


@tool(effects=NO_EFFECTS)
async def shout(text: str) -> str:
    """Return the text in capital letters.

    Args:
        text: What to shout.
    """
    return text.upper()


def _risk(args: object, workspace: Path) -> Risk:
    del args, workspace
    return Risk("high", "it is dangerous")


@tool(effects=NO_EFFECTS, risk=_risk)
async def danger() -> str:
    """Do something that a person must approve."""
    return "it was done"


def texts(request: ModelRequest) -> list[str]:
    """What the model has read, one text for each message."""
    said: list[str] = []
    for message in history_of(request):
        content = [part.text for part in message.content if isinstance(part, Text)]
        mark = {UserMessage: "user", AssistantMessage: "assistant", ToolMessage: "tool"}
        text = re.sub(r"\[workspace: [^\n]*\]\n", "", " ".join(content))
        said.append(f"{mark[type(message)]}: {text}")
    return said


class ScriptedAgent:
    """The model of a host: it replies by the last thing that it reads."""

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []
        self.gate = Gate()

    @property
    def model(self) -> Model:
        return ScriptedModel(self.reply, name="scripted:agent")

    def reply(self, request: ModelRequest) -> ScriptedReply:
        self.requests.append(request)
        said = texts(request)
        last = said[-1]
        if last.startswith("tool: "):
            start = next(n for n in range(len(said), 0, -1) if not said[n - 1].startswith("tool: "))
            results = ", ".join(text.removeprefix("tool: ") for text in said[start:])
            return ScriptedReply(text=f"The results are {results}.", usage=USAGE)
        return self.first_reply(last.splitlines()[-1].removeprefix("user: "), request)

    def first_reply(self, text: str, request: ModelRequest) -> ScriptedReply:
        weather = ScriptedCall("get_weather", {"city": "Paris"})
        rome = ScriptedCall("get_weather", {"city": "Rome"})
        own = ScriptedCall("shout", {"text": "hello"})
        replies = {
            "weather": ScriptedReply(text="I look.", calls=[weather], usage=USAGE),
            "two": ScriptedReply(calls=[weather, rome], usage=USAGE),
            "mixed": ScriptedReply(calls=[own, weather], usage=USAGE),
            "danger": ScriptedReply(calls=[ScriptedCall("danger")], usage=USAGE),
            "shout": ScriptedReply(text="I shout.", calls=[own], usage=USAGE),
            "wait": ScriptedReply(text="It begins", piece=3, usage=USAGE, hold=self.gate.wait),
            "slowly": ScriptedReply(text=WORDS, pause=0.005),
            "json": ScriptedReply(text='{"answer": 42}', usage=USAGE),
            "tools": ScriptedReply(text=" ".join(spec.name for spec in request.tools)),
            "history": ScriptedReply(text=" | ".join(texts(request))),
        }
        echo = ScriptedReply(text=f"You said: {text}", piece=4, usage=USAGE)
        return replies.get(text.partition(" ")[0], echo)


@asynccontextmanager
async def served_agent(
    path: Path, agent: ScriptedAgent | None = None, **settings: Any
) -> AsyncGenerator[tuple[Any, ServedHost]]:
    """OpenAI's client for Python, untyped, since tests also send what is wrong; and its host."""
    model = (agent or ScriptedAgent()).model
    async with served_host(path, model=model, tools=[shout, danger], **settings) as host:
        async with client_of(host.server.url, host.token) as client:
            yield client, host
        # The client asks the loop's own threads for addresses.
        await asyncio.get_running_loop().shutdown_default_executor()


def client_of(url: str, token: str) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{url}v1", api_key=token, max_retries=0, timeout=20)
