"""openai-agents: an agent with one tool, streamed, tracing off."""

# The package is not installed here; a Python of its own runs this.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

from parts.peer import OnText, Turn, run_peer


@function_tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def make(url: str) -> Turn:
    set_tracing_disabled(disabled=True)
    client = AsyncOpenAI(base_url=url, api_key="none")
    agents: dict[str, Agent] = {}

    async def turn(model: str, on_text: OnText) -> None:
        if model not in agents:
            chat_model = OpenAIChatCompletionsModel(model=model, openai_client=client)
            agents[model] = Agent(name="peer", model=chat_model, tools=[add])
        result = Runner.run_streamed(agents[model], "hi", max_turns=200)
        async for event in result.stream_events():
            if event.type == "raw_response_event":
                data = event.data
                if data.type == "response.output_text.delta":
                    on_text(data.delta)

    return turn


if __name__ == "__main__":
    run_peer(make)
