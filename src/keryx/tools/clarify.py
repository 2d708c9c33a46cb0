"""`clarify`: ask a person, in words, while the turn waits."""

from __future__ import annotations

from typing import Any

from keryx.ports.effects import uses
from keryx.ports.tool_context import ToolContext
from keryx.tools.function import tool


@tool(effects=uses("person", writes=False), replay="safe")
async def clarify(question: str, context: ToolContext, choices: list[str] | None = None) -> Any:
    """Ask the person a question that only they can answer, and wait for the answer.

    Args:
        question: What to ask, complete in itself.
        choices: Answers to offer; they may say something else.
    """
    answer = await context.ask(question, choices or ())
    if context.nested:
        return {"text": answer or "", "answered": answer is not None}
    if answer is None:
        return "[nobody answered; decide by yourself, or say what you would need to know]"
    return answer
