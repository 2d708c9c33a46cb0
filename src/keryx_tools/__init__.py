"""The tools that this script was granted, as functions. Safe from any thread and any process.

    from keryx_tools import terminal, read_file, parallel

    print(terminal("ls -l", timeout=10))
    for result in parallel(read_file, ["a.txt", "b.txt"]):
        print(result)

Each function takes the tool's own arguments and `_deadline`, in seconds. It returns a `Result`, a
dict whose `str()` is the tool's text, and raises a `ToolError`. `keryx_tools.aio` has the same
functions for asyncio. This package needs nothing but Python 3.8 and its standard library.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

from keryx_tools import _transports
from keryx_tools._errors import (
    ToolCancelledError,
    ToolConnectionError,
    ToolDeniedError,
    ToolError,
    ToolFailedError,
    ToolTimeoutError,
    ToolUnknownError,
)
from keryx_tools._fanout import Outcomes, parallel
from keryx_tools._functions import GRANTS, PATIENCE, Grant, describe_function, not_granted_error
from keryx_tools._results import Result, result_or_raise
from keryx_tools._transports.deadline import Deadline


def finish(value: Any) -> None:
    """Pass a value (any JSON) as the result of this script; the last one counts."""
    name = "keryx.finish"  # no tool can have this name
    deadline = Deadline(name, PATIENCE)
    result_or_raise(_transports.call(name, {"value": value}, deadline), deadline)


_OWN = (
    Outcomes,
    Result,
    ToolCancelledError,
    ToolConnectionError,
    ToolDeniedError,
    ToolError,
    ToolFailedError,
    ToolTimeoutError,
    ToolUnknownError,
    finish,
    parallel,
)
_function_cache: dict[Grant, Callable[..., Result]] = {}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    if name == "aio":
        return import_module("keryx_tools.aio")
    if name.startswith("_"):
        raise AttributeError(name)
    grant = GRANTS.all().get(name)
    if grant is not None:
        # The same function every time, so that it can be pickled by its name.
        return _function_cache.get(grant) or _function_cache.setdefault(grant, _function(grant))
    raise not_granted_error(name)


def __dir__() -> list[str]:
    return sorted({*(own.__name__ for own in _OWN), *GRANTS.all()})


def _function(grant: Grant) -> Callable[..., Result]:
    def call(*args: Any, **named: Any) -> Result:
        bound = grant.bind(args, named)
        deadline = Deadline(bound.tool, bound.seconds)
        return result_or_raise(_transports.call(bound.tool, bound.arguments, deadline), deadline)

    describe_function(call, grant, __name__)
    return call


if os.environ.get(_transports.ADDRESS, "").startswith("stdio:"):
    # At once, so that all processes that the script starts later can connect.
    _transports.prepare()
