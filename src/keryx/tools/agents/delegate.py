"""`delegate`: child agents work on parts of a task, at the same time.

Each child is a nested call of the tool `agent`, so it has a bar of its own on screens and can be
cancelled alone. The calls have the same ids when `delegate` runs again after a crash, and so find
the same children.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, cast

import msgspec

from keryx.aio.group import Group
from keryx.errors import ToolFailedError
from keryx.messages import CallOutcome, Json
from keryx.ports.agents import ChildResult, ChildTask
from keryx.ports.effects import NO_EFFECTS
from keryx.ports.tool import find_named
from keryx.ports.tool_context import ToolContext
from keryx.tools.function import tool
from keryx.tools.mcp.tool import PREFIX as MCP_PREFIX

MOST_TASKS: Final = 50
LONGEST_REPLY: Final = 20_000
"""Characters of one child's reply that the model of the parent gets."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One task for a child agent.

    Attributes:
        task: What to do, complete in itself: the child sees nothing of this conversation.
        model: Another model, as provider:name.
        tools: The tools that it may use, of those that you have; all of them if absent.
        folder: A folder of the workspace to work in.
        read_only: The child may change nothing.
        max_tokens: Stop the child after so many tokens.
    """

    task: str
    model: str | None = None
    tools: list[str] | None = None
    folder: str | None = None
    read_only: bool = False
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None


def _tasks_preview(args: Any) -> str:
    return ", ".join(task.task for task in args.tasks)


@tool(effects=NO_EFFECTS, replay="keyed", container=True, preview=_tasks_preview)
async def delegate(tasks: list[Task], context: ToolContext) -> Any:
    """Let child agents work on tasks at the same time, and get one result for each.

    Use it for parts that do not depend on each other: research, reviews, changes in different
    files. Each child is a session of its own with the same tools; it sees nothing of this
    conversation, so say everything that it needs.

    Args:
        tasks: One entry for each child agent.
    """
    if not 1 <= len(tasks) <= MOST_TASKS:
        raise ToolFailedError(f"delegate takes 1 to {MOST_TASKS} tasks, not {len(tasks)}")
    results: dict[int, dict[str, Any]] = {}

    async def run(number: int, task: Task) -> None:
        result = results[number] = _result(task, await context.call(agent, _arguments(task)))
        # What is printed remains if the call is cancelled before all children have ended.
        context.emit(f"{_summary(result)}\n")
        context.progress(len(results), len(tasks))

    context.progress(0, len(tasks))
    scope = context.scope.child("agents")
    try:
        async with Group(scope) as group:
            for number, task in enumerate(tasks):
                group.start(run(number, task), name=f"agent {number}")
    finally:
        scope.close()
    return {"results": [results[number] for number in range(len(tasks))]}


def _arguments(task: Task) -> dict[str, Any]:
    """Return what is given. An empty list of tools is given too: it means none."""
    values = msgspec.structs.asdict(task)
    return {name: value for name, value in values.items() if value is not None}


def _result(task: Task, outcome: CallOutcome) -> dict[str, Any]:
    described: dict[str, Any] = {"task": task.task[:200], "outcome": outcome.outcome}
    if outcome.outcome != "completed":
        return {**described, "problem": outcome.text}
    match outcome.content:
        case (Json(value=value),):
            result: object = msgspec.json.decode(value)
            if isinstance(result, dict):
                return cast("dict[str, Any]", result)
        case _:
            pass
    # A hook has replaced what the child returned.
    return {**described, "reply": outcome.text}


def _summary(result: Mapping[str, Any]) -> str:
    """Return the result of a child as it is shown while the others run."""
    said = result.get("reply") or result.get("problem") or ""
    return f"{result['task']} ({result['outcome']}): {said}"


@tool(effects=NO_EFFECTS, replay="keyed")
async def agent(
    task: str,
    context: ToolContext,
    model: str | None = None,
    tools: list[str] | None = None,
    folder: str | None = None,
    read_only: bool = False,  # noqa: FBT001, FBT002 (models write arguments by name)
    max_tokens: int | None = None,
) -> Any:
    """Run one child agent.

    Args:
        task: What to do.
        model: Another model.
        tools: The tools that it may use.
        folder: A folder of the workspace to work in.
        read_only: The child may change nothing.
        max_tokens: Stop the child after so many tokens.
    """
    if not task.strip():
        raise ToolFailedError("the task is empty; say what the child agent must do")
    workspace = None
    if folder is not None:
        workspace = await context.to_thread(_folder, context, folder)
    child = ChildTask(
        text=task,
        model=model,
        tools=None if tools is None else tuple(_tool_name(context, name) for name in tools),
        workspace=workspace,
        read_only=read_only,
        max_tokens=max_tokens,
    )
    return _described(task, await context.run_agent(child))


def _tool_name(context: ToolContext, name: str) -> str:
    """Return the name of the tool that has this name or alias."""
    named = find_named(context.tools, name)
    if named is None and name.startswith(MCP_PREFIX):
        # A grant may stand for all tools of a server, so only the tools themselves tell.
        raise ToolFailedError(f"a child agent cannot get {name}: this session has no such tool")
    return name if named is None else named.name


def _folder(context: ToolContext, folder: str) -> str:
    path = context.files.resolve(folder, write=False)
    if not path.is_dir():
        raise ToolFailedError(f"{folder!r} is not a folder of the workspace")
    return str(path)


def _described(task: str, result: ChildResult) -> dict[str, Any]:
    text = result.text
    if len(text) > LONGEST_REPLY:
        text = f"{text[:LONGEST_REPLY]}\n[shortened; the whole reply is in {result.session_id}]"
    described: dict[str, Any] = {
        "task": task[:200],
        "session": result.session_id,
        "outcome": result.outcome,
        "reply": text,
        "steps": result.steps,
        "calls": result.calls,
        "tokens": result.usage.input_tokens + result.usage.output_tokens,
        "cost": result.cost,
    }
    if result.problem:
        described["problem"] = result.problem
    return described
