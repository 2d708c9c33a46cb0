"""The same tools for asyncio: `from keryx_tools.aio import terminal`, then `await terminal(...)`.

All calls of a loop share one connection and run at the same time. Cancelling the task that awaits a
call cancels the call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

from keryx_tools import _ways
from keryx_tools._fanout import LIMIT, Outcomes, prepared
from keryx_tools._functions import GRANTS, Grant, dress, refused
from keryx_tools._results import Result, opened
from keryx_tools._ways import packets
from keryx_tools._ways.deadline import Deadline
from keryx_tools._ways.folder import Letter
from keryx_tools.aio import _line

_made: dict[Grant, Callable[..., Awaitable[Result]]] = {}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    if name.startswith("_"):
        raise AttributeError(name)
    grant = GRANTS.all().get(name)
    if grant is not None:
        return _made.get(grant) or _made.setdefault(grant, _function(grant))
    raise refused(name)


def __dir__() -> list[str]:
    return sorted({"parallel", *GRANTS.all()})


def _function(grant: Grant) -> Callable[..., Coroutine[Any, Any, Result]]:
    async def call(*args: Any, **named: Any) -> Result:
        bound = grant.bind(args, named)
        deadline = Deadline(bound.tool, bound.seconds)
        return opened(await _call(bound.tool, bound.arguments, deadline), deadline)

    dress(call, grant, __name__)
    return call


async def _call(tool: str, arguments: dict[str, Any], deadline: Deadline) -> dict[str, Any]:
    found = _ways.way(tool)
    if found.kind == "unix":
        params = packets.call_params(tool, arguments, deadline.seconds)
        return await _line.call(found.place, found.secret, params, deadline)
    letter = Letter(found.place, _ways.letter_params(found, tool, arguments, deadline), deadline)
    try:
        while True:
            answer = letter.answer()
            if answer is not None:
                return answer
            await asyncio.sleep(letter.pause())
    except BaseException:
        letter.give_up()
        raise


async def parallel(
    tool: Callable[..., Awaitable[Any]], items: Iterable[Any], limit: int = LIMIT
) -> Outcomes:
    """As `keryx_tools.parallel`, for the functions of this module and any other coroutine."""
    calls = prepared(tool, items, limit)
    outcomes = Outcomes([None] * len(calls))
    rest = iter(list(enumerate(calls)))

    async def outcome(args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        try:
            return await tool(*args, **named)
        except Exception as error:  # noqa: BLE001 (it is handed to the caller, in its place)
            return error

    async def work() -> None:
        for at, (args, named) in rest:
            outcomes[at] = await outcome(args, named)

    loop = asyncio.get_running_loop()
    workers = [loop.create_task(work()) for _ in range(min(limit, len(calls)))]
    try:
        if workers:
            await asyncio.wait(workers)
    finally:
        rest_of_them = [worker for worker in workers if worker.cancel()]
        if rest_of_them:
            await asyncio.wait(rest_of_them)
    for worker in workers:
        worker.result()
    return outcomes
