"""langgraph: LangChain's agent with one tool, its messages streamed, nothing checkpointed."""

# The package is not installed here; a Python of its own runs this.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from langchain.agents import create_agent
from langchain_core.messages import AIMessageChunk
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from parts.peer import OnText, Turn, run_peer


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def make(url: str) -> Turn:
    agents = {}

    async def turn(model: str, on_text: OnText) -> None:
        if model not in agents:
            chat_model = ChatOpenAI(model=model, base_url=url, api_key="none", streaming=True)
            agents[model] = create_agent(chat_model, [add])
        messages = {"messages": [{"role": "user", "content": "hi"}]}
        config = {"recursion_limit": 1_000}
        async for message, _ in agents[model].astream(messages, config, stream_mode="messages"):
            if isinstance(message, AIMessageChunk) and isinstance(message.content, str):
                on_text(message.content)

    return turn


if __name__ == "__main__":
    run_peer(make)
