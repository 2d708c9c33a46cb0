"""pydantic-ai: an agent with one tool, its events streamed."""

# The package is not installed here; a Python of its own runs this.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from pydantic_ai import Agent, PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta, UsageLimits
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from parts.peer import OnText, Turn, run_peer


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def make(url: str) -> Turn:
    provider = OpenAIProvider(base_url=url, api_key="none")
    limits = UsageLimits(request_limit=None)
    agents: dict[str, Agent] = {}

    async def turn(model: str, on_text: OnText) -> None:
        if model not in agents:
            agents[model] = Agent(OpenAIChatModel(model, provider=provider), tools=[add])
        async with agents[model].run_stream_events("hi", usage_limits=limits) as events:
            async for event in events:
                match event:
                    case PartStartEvent(part=TextPart(content=text)):
                        on_text(text)
                    case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                        on_text(text)

    return turn


if __name__ == "__main__":
    run_peer(make)
