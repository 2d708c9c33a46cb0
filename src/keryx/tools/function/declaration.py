"""What a developer may declare about a tool, and the checks of it.

Every refusal says what to do instead. It knows nothing of parameters and docstrings.
"""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeGuard, get_args

import msgspec

from keryx.errors import InvalidToolError
from keryx.ports.effects import EXCLUSIVE, Effects, EffectsOf
from keryx.ports.tool import Isolation, Replay, Risk

NO_RISK = Risk("none")

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")  # what the providers of models accept


class Declaration(msgspec.Struct, frozen=True):
    """The options of the decorator."""

    name: str | None = None
    description: str | None = None
    effects: Effects | EffectsOf = EXCLUSIVE
    replay: Replay = "never"
    isolation: Isolation | None = None
    timeout: float | None = None
    risk: Risk | Callable[..., Risk] = NO_RISK
    preview: Callable[[Any], str] | None = None
    container: bool = False
    aliases: Sequence[str] = ()


def check_function(function: object) -> None:
    """Raise `InvalidToolError` if this is not one plain function."""
    if not (_is_plain(function) and _is_plain(inspect.unwrap(function))):
        raise InvalidToolError(f"{function!r} is not a function: wrap it in a `def` of its own")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidToolError(
            "a generator cannot be a tool: return one value, and use ToolContext.emit to stream"
        )
    if inspect.iscoroutinefunction(inspect.unwrap(function)) and not is_async(function):
        raise InvalidToolError(
            "a plain function wraps an `async def`: make the wrapper `async def` too"
        )


def check_declaration(name: str, declaration: Declaration) -> None:
    """Raise `InvalidToolError` for values that no tool can have."""
    if _NAME.fullmatch(name) is None:
        raise InvalidToolError(
            f"{name!r} cannot be a tool's name: choose up to 64 letters, digits, `_` and `-` "
            'with @tool(name="...")'
        )
    if isinstance(declaration.aliases, str) or not all(map(_NAME.fullmatch, declaration.aliases)):
        raise InvalidToolError(
            f"aliases={declaration.aliases!r} is not a list of names: choose for each up to 64 "
            "letters, digits, `_` and `-`"
        )
    for option, value, allowed in (
        ("replay", declaration.replay, get_args(Replay)),
        ("isolation", declaration.isolation, (None, *get_args(Isolation))),
    ):
        if value not in allowed:
            raise InvalidToolError(f"{option}={value!r} does not exist: use one of {allowed}")
    timeout = declaration.timeout
    if timeout is not None and not (timeout > 0 and math.isfinite(timeout)):
        raise InvalidToolError(
            f"timeout={timeout!r} must be more than 0 seconds: use None for no limit"
        )
    if not (isinstance(declaration.effects, Effects) or callable(declaration.effects)):
        raise InvalidToolError("effects must be Effects, or a function from arguments to Effects")
    if not (isinstance(declaration.risk, Risk) or callable(declaration.risk)):
        raise InvalidToolError("risk must be a Risk, or a function from arguments to Risk")
    if not (declaration.preview is None or callable(declaration.preview)):
        raise InvalidToolError("preview must be a function from arguments to one line of text")


def isolation_of(function: Callable[..., Any], declaration: Declaration) -> Isolation:
    """Return where the function runs. Raise `InvalidToolError` if it cannot run there."""
    runs_async = is_async(function)
    isolation = declaration.isolation or ("loop" if runs_async else "thread")
    if declaration.container and not (runs_async and isolation == "loop"):
        raise InvalidToolError(
            'a container runs on the loop: make it `async def`, with isolation="loop"'
        )
    match isolation:
        case "loop":
            if not runs_async:
                raise InvalidToolError(
                    "a plain function would block the loop: make it `async def`, "
                    'or use isolation="thread"'
                )
        case "thread":
            if runs_async:
                raise InvalidToolError(
                    "an `async def` runs on the loop, not in a thread: make it a plain `def`, "
                    'or use isolation="loop"'
                )
        case "process":
            _check_importable(function)
    return isolation


def check_context(isolation: Isolation) -> None:
    """Raise `InvalidToolError` for a context parameter where there is no context."""
    if isolation == "process":
        raise InvalidToolError(
            'isolation="process" gives no ToolContext, which lives in the host: print the '
            "output, and use keryx.get_token() to notice a cancellation"
        )


def _is_plain(function: object) -> TypeGuard[Callable[..., Any]]:
    return inspect.isfunction(function) or inspect.ismethod(function)


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether calling the function gives a coroutine."""
    return inspect.iscoroutinefunction(function)


def _check_importable(function: Callable[..., Any]) -> None:
    """Raise `InvalidToolError` if another process cannot import it by module and name."""
    name = function.__qualname__
    if inspect.ismethod(function) or not name.isidentifier():
        raise InvalidToolError(
            f'isolation="process" needs a function that another process can import, and {name!r} '
            "is not at module level: move it there"
        )
    module = sys.modules.get(function.__module__)
    if module is None or getattr(module, "__file__", None) is None:
        raise InvalidToolError(
            f'isolation="process" needs a function that another process can import, and the '
            f"module {function.__module__!r} has no file: move the function into a module"
        )
    if function.__module__ == "__main__":
        raise InvalidToolError(
            'isolation="process" needs a function that another process can import, and this one is '
            "in the program itself, which would run once more: move it into a module"
        )


def risk_function(risk: Risk | Callable[..., Risk]) -> Callable[[Any, Path], Risk]:
    """Return a function that judges arguments in a workspace, from any form of `risk`."""
    if isinstance(risk, Risk):
        return lambda _args, _workspace: risk
    if len(inspect.signature(risk).parameters) > 1:
        return risk
    return lambda args, _workspace: risk(args)
