"""The same tools for asyncio: `from keryx_tools.aio import terminal`, then `await terminal(...)`.

All calls of a loop share one connection and run at the same time. Cancelling the task that awaits a
call cancels the call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

from keryx_tools import _transports
from keryx_tools._fanout import LIMIT, Outcomes, prepared
from keryx_tools._functions import GRANTS, Grant, describe_function, not_granted_error
from keryx_tools._results import Result, result_or_raise
from keryx_tools._transports import packets
from keryx_tools._transports.deadline import Deadline
from keryx_tools._transports.files import FileCall
from keryx_tools.aio import _connection

_function_cache: dict[Grant, Callable[..., Awaitable[Result]]] = {}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    if name.startswith("_"):
        raise AttributeError(name)
    grant = GRANTS.all().get(name)
    if grant is not None:
        return _function_cache.get(grant) or _function_cache.setdefault(grant, _function(grant))
    raise not_granted_error(name)


def __dir__() -> list[str]:
    return sorted({"parallel", *GRANTS.all()})


def _function(grant: Grant) -> Callable[..., Coroutine[Any, Any, Result]]:
    async def call(*args: Any, **named: Any) -> Result:
        bound = grant.bind(args, named)
        deadline = Deadline(bound.tool, bound.seconds)
        return result_or_raise(await _call(bound.tool, bound.arguments, deadline), deadline)

    describe_function(call, grant, __name__)
    return call


async def _call(tool: str, arguments: dict[str, Any], deadline: Deadline) -> dict[str, Any]:
    address = _transports.host_address(tool)
    if address.kind == "unix":
        params = packets.call_params(tool, arguments, deadline.seconds)
        return await _connection.call(address.location, address.secret, params, deadline)
    file_call = FileCall(
        address.location, _transports.file_call_params(address, tool, arguments, deadline), deadline
    )
    try:
        while True:
            answer = file_call.answer()
            if answer is not None:
                return answer
            await asyncio.sleep(file_call.pause())
    except BaseException:
        file_call.give_up()
        raise


async def parallel(
    tool: Callable[..., Awaitable[Any]], items: Iterable[Any], limit: int = LIMIT
) -> Outcomes:
    """As `keryx_tools.parallel`, for the functions of this module and any other coroutine."""
    calls = prepared(tool, items, limit)
    outcomes = Outcomes([None] * len(calls))
    remaining = iter(list(enumerate(calls)))

    async def outcome(args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        try:
            return await tool(*args, **named)
        except Exception as error:  # noqa: BLE001 (the caller finds it among the outcomes)
            return error

    async def work() -> None:
        for at, (args, named) in remaining:
            outcomes[at] = await outcome(args, named)

    loop = asyncio.get_running_loop()
    workers = [loop.create_task(work()) for _ in range(min(limit, len(calls)))]
    try:
        if workers:
            await asyncio.wait(workers)
    finally:
        cancelled = [worker for worker in workers if worker.cancel()]
        if cancelled:
            await asyncio.wait(cancelled)
    for worker in workers:
        worker.result()
    return outcomes
