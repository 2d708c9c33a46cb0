"""`mixture_of_agents`: several models answer at the same time, and one combines the answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from keryx.aio.group import Group
from keryx.errors import ToolFailedError
from keryx.ports.effects import NO_EFFECTS
from keryx.ports.tool_context import ToolContext
from keryx.tools.function import tool

MOST_MODELS: Final = 8
SAMPLES: Final = 3
"""How often a single model is asked if no others are named."""
LONGEST_ANSWER: Final = 30_000
SYSTEM: Final = "Answer the question as well as you can. Say where you are not sure."
COMBINE: Final = (
    "You get a question and several answers from different models. Some may be wrong. Compare "
    "them, correct what is wrong, and write the one best answer. Say where they disagree."
)


@tool(effects=NO_EFFECTS, replay="safe")
async def mixture_of_agents(
    question: str,
    context: ToolContext,
    models: list[str] | None = None,
    combine_with: str | None = None,
) -> dict[str, Any]:
    """Ask several models the same question at the same time, and combine their answers.

    Use it for hard questions where one answer is not enough. It costs as much as all of them.

    Args:
        question: The question, complete in itself.
        models: Models to ask, as provider:name; without them, this session's model three times.
        combine_with: The model that combines the answers; without it, this session's model.
    """
    if models is not None and not 1 <= len(models) <= MOST_MODELS:
        raise ToolFailedError(f"mixture_of_agents asks 1 to {MOST_MODELS} models")
    names: list[str | None] = [*models] if models is not None else [None] * SAMPLES
    answers, problems = await _ask_all(question, names, context)
    if not answers:
        raise ToolFailedError(f"no model answered: {'; '.join(problems)}")
    text = await context.ask_model(
        "mixture",
        "\n\n".join([f"Question:\n{question}", *answers]),
        system=COMBINE,
        model=combine_with,
    )
    return {"text": text, "answers": len(answers), "problems": problems}


async def _ask_all(
    question: str, names: Sequence[str | None], context: ToolContext
) -> tuple[list[str], list[str]]:
    """Return the answers in order, and what went wrong with models that gave none."""
    answers: dict[int, str] = {}
    problems: dict[int, str] = {}

    async def ask(number: int, model: str | None) -> None:
        try:
            reply = await context.ask_model("mixture", question, system=SYSTEM, model=model)
        except ToolFailedError as error:
            problems[number] = f"{model or 'the model'}: {error}"
        else:
            answers[number] = f"Answer of {model or f'sample {number + 1}'}:\n"
            answers[number] += reply[:LONGEST_ANSWER]
            # What is printed remains if the call is cancelled before all have answered.
            context.emit(f"{answers[number]}\n")
        context.progress(len(answers) + len(problems), len(names) + 1)

    scope = context.scope.child("models")
    try:
        async with Group(scope) as group:
            for number, model in enumerate(names):
                group.start(ask(number, model), name=f"model {number}")
    finally:
        scope.close()
    return [answers[number] for number in sorted(answers)], list(problems.values())
