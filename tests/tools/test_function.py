"""From a function to a tool: what it may declare, and how it behaves then."""

from __future__ import annotations

import asyncio
import functools
import inspect
import sys
import types
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import msgspec
import pytest

from keryx.errors import InvalidToolError
from keryx.ports.effects import EXCLUSIVE, NO_EFFECTS, Effects, reads, writes
from keryx.ports.tool import Risk, Tool
from keryx.ports.tool_context import ToolContext
from keryx.tools.function import PREVIEW_LIMIT, FunctionTool, tool

if TYPE_CHECKING:
    from decimal import Decimal as Unimported

CONTEXT = cast(ToolContext, object())
MAKE: Any = tool  # a declaration that the type checker would refuse as well


@tool
def shout(text: str, times: int = 1) -> str:
    """Say it louder."""
    return text.upper() * times


@tool(isolation="process", timeout=2.5, replay="safe")
def count(text: str) -> int:
    """Count characters."""
    return len(text)


@tool(name="web-fetch", container=True)
async def fetch(url: str, context: ToolContext) -> tuple[str, ToolContext]:
    """Fetch a page."""
    await asyncio.sleep(0)
    return url, context


def test_a_plain_function_becomes_a_tool_with_careful_defaults() -> None:
    function_tool: Tool = shout
    assert function_tool.name == "shout"
    assert function_tool.description == "Say it louder."
    assert function_tool.isolation == "thread"
    assert function_tool.replay == "never"
    assert function_tool.timeout is None
    assert function_tool.container is False
    args = function_tool.parse('{"text": "hi"}')
    assert function_tool.effects(args) is EXCLUSIVE
    assert function_tool.risk(args, Path("/")) == Risk("none")
    assert function_tool.invoke(args, CONTEXT) == "HI"


def _judge(args: Any) -> Risk:
    return Risk("high" if args.path == "/" else "low")


async def test_an_async_function_runs_on_the_loop_and_gets_the_context() -> None:
    assert fetch.isolation == "loop"
    assert fetch.container is True
    assert fetch.name == "web-fetch"
    assert list(fetch.parameters["properties"]) == ["url"]
    args = fetch.parse('{"url": "u"}')
    assert await fetch.invoke(args, CONTEXT) == ("u", CONTEXT)


def test_what_was_declared_is_kept() -> None:
    assert (count.isolation, count.timeout, count.replay) == ("process", 2.5, "safe")


def test_a_tool_is_still_its_function() -> None:
    assert shout("a", times=2) == "AA"
    assert shout.__name__ == "shout"
    assert shout.__doc__ == "Say it louder."
    assert shout.__wrapped__("a") == "A"
    assert list(inspect.signature(shout).parameters) == ["text", "times"]
    assert repr(shout) == "<tool shout>"
    assert FunctionTool.__doc__ is not None
    assert "Calling it calls the function" in FunctionTool.__doc__


def test_a_tool_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        shout.name = "whisper"  # pyright: ignore[reportAttributeAccessIssue]  # that is the point
    with pytest.raises((AttributeError, TypeError)):
        shout.extra = 1  # pyright: ignore[reportAttributeAccessIssue]  # that is the point
    assert len({shout, count}) == 2


def test_a_method_of_an_object_can_be_a_tool() -> None:
    class Counter:
        def __init__(self) -> None:
            self.total = 0

        def add(self, amount: int) -> int:
            """Add to the total."""
            self.total += amount
            return self.total

    counter = Counter()
    function_tool = tool(counter.add)
    assert list(function_tool.parameters["properties"]) == ["amount"]
    assert function_tool.invoke(function_tool.parse({"amount": 3}), CONTEXT) == 3
    assert counter.total == 3


def test_effects_and_risk_may_depend_on_the_arguments() -> None:
    def effects(args: Any) -> Effects:
        return writes(args.path) if args.text else reads(args.path)

    @tool(effects=effects, risk=_judge)
    def put(path: str, text: str = "") -> None:
        """Put a text."""

    look, write = put.parse({"path": "/"}), put.parse({"path": "a", "text": "b"})
    assert put.effects(look) == reads("/")
    assert put.effects(write) == writes("a")
    assert put.risk(look, Path("/")) == Risk("high")
    assert put.risk(write, Path("/")) == Risk("low")


def test_effects_and_risk_may_be_fixed() -> None:
    @tool(effects=NO_EFFECTS, risk=Risk("high", "it is"))
    def look() -> None:
        """Look."""

    assert look.effects(look.parse("")) is NO_EFFECTS
    assert look.risk(look.parse(""), Path("/")) == Risk("high", "it is")


def test_an_error_in_effects_or_risk_is_not_hidden() -> None:
    def broken(args: Any) -> Any:
        return args.nothing

    @tool(effects=broken, risk=broken)
    def look() -> None:
        """Look."""

    with pytest.raises(AttributeError):
        look.effects(look.parse(""))
    with pytest.raises(AttributeError):
        look.risk(look.parse(""), Path("/"))


class Note(msgspec.Struct):
    words: list[str]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"path": "src/a.py"}, "src/a.py"),
        ({"path": "\n\n  first \nsecond"}, "first"),
        ({"path": "red \x1b[31m\ud800 text"}, "red  [31m  text"),
        ({"path": "x" * 500}, "x" * (PREVIEW_LIMIT - 1) + "…"),
        ({"path": "", "depth": 3}, "depth=3"),
        ({"path": "", "note": {"words": ["a"]}}, 'note={"words":["a"]}'),
        ({"path": "", "anything": object()}, ""),
        ({"path": ""}, ""),
    ],
)
def test_a_preview_is_one_short_line_of_the_most_telling_argument(
    arguments: dict[str, Any], line: str
) -> None:
    @tool
    def look(
        path: str, anything: Any = None, depth: int | None = None, note: Note | None = None
    ) -> None:
        """Look."""

    assert look.preview(look.parse(arguments)) == line


@pytest.mark.parametrize(
    ("preview", "line"),
    [
        ("look at {0.path}\nagain".format, "look at here"),
        (("y" * 1000).format, "y" * (PREVIEW_LIMIT - 1) + "…"),
        ("{0.nothing}".format, "here"),
        (id, "here"),
    ],
)
def test_a_declared_preview_is_cut_to_one_line_and_never_raises(
    preview: Callable[[Any], Any], line: str
) -> None:
    @tool(preview=preview)
    def look(path: str) -> None:
        """Look."""

    assert look.preview(look.parse({"path": "here"})) == line
    assert isinstance(look.preview(None), str)


def test_types_may_be_defined_where_the_function_is() -> None:
    class Local(msgspec.Struct):
        inner: int

    @tool
    def bare(value: Local) -> None:
        """Take a local type."""

    @tool(name="other")
    def named(value: list[Local], context: Annotated[ToolContext, "the context"]) -> None:
        """Take a local type."""

    assert bare.parse('{"value": {"inner": 1}}').value == Local(1)
    assert named.parse('{"value": [{"inner": 1}]}').value == [Local(1)]
    assert list(named.parameters["properties"]) == ["value"]


def test_the_names_where_a_function_is_passed_by_do_not_change_its_types() -> None:
    def decorate(function: Callable[..., Any], Note: type) -> Tool:  # noqa: N803  # it misleads
        return tool(function)

    def take(note: Note) -> None:
        """Take."""

    function_tool = decorate(take, int)
    assert function_tool.parameters["properties"]["note"] == {"$ref": "#/$defs/Note"}


def test_the_type_of_the_result_does_not_matter() -> None:
    @tool
    def look() -> Unimported:  # pyright: ignore[reportReturnType]  # never run
        """Look."""

    assert look.parameters["properties"] == {}


def test_the_context_may_be_optional_and_imported_for_type_checkers_only() -> None:
    source = '''
def look(path: str, ctx: "ToolContext | None" = None):
    """Look."""
    return ctx
'''
    module = types.ModuleType("elsewhere")
    exec(source, module.__dict__)
    function_tool = tool(module.look)
    assert list(function_tool.parameters["properties"]) == ["path"]
    assert function_tool.invoke(function_tool.parse({"path": "a"}), CONTEXT) is CONTEXT


def test_a_wrapped_function_keeps_its_schema() -> None:
    def twice(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs), function(*args, **kwargs)

        return wrapper

    @tool
    @twice
    def look(path: str) -> str:
        """Look."""
        return path

    assert list(look.parameters["properties"]) == ["path"]
    assert look.invoke(look.parse({"path": "a"}), CONTEXT) == ("a", "a")


def plain(text: str) -> None:
    """Do."""


async def awaited(text: str) -> None:
    """Do."""


@functools.wraps(awaited)
def half_awaited(text: str) -> Any:
    return awaited(text)


def outside(text: str) -> None:
    """Do."""


outside.__module__ = "no.such.module"


def local() -> Callable[..., Any]:
    def inner(text: str) -> None:
        """Do."""

    return inner


def unannotated(text):  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType]
    """Do."""


def method_like(self):  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType]
    """Do."""


def star(*texts: str) -> None:
    """Do."""


def double_star(**texts: str) -> None:
    """Do."""


def positional(text: str, /) -> None:
    """Do."""


def dunder(*, __text: str) -> None:
    """Do."""


def two_contexts(one: ToolContext, two: ToolContext | None) -> None:
    """Do."""


def undefined(one: str, two: Unimported) -> None:
    """Do."""


def undocumented(text: str) -> None: ...


def only_parameters(text: str) -> None:
    """
    Args:
        text: A text.
    """


def generator(text: str) -> Iterator[str]:
    """Do."""
    yield text


async def async_generator(text: str) -> AsyncIterator[str]:
    """Do."""
    yield text


@functools.wraps(len)
def built_in(text: str) -> int:
    return len(text)


INVALID: list[tuple[Any, dict[str, Any], list[str]]] = [
    (plain, {"isolation": "loop"}, ["block the loop", "async def", 'isolation="thread"']),
    (awaited, {"isolation": "thread"}, ["not in a thread", 'isolation="loop"']),
    (plain, {"container": True}, ["container", "on the loop", "async def"]),
    (awaited, {"container": True, "isolation": "process"}, ["container", "on the loop"]),
    (local(), {"isolation": "process"}, ["import", "module level"]),
    (lambda: None, {"isolation": "process", "name": "x"}, ["import", "module level"]),
    ("text".upper, {}, ["not a function", "def"]),
    (outside, {"isolation": "process"}, ["import", "'no.such.module'"]),
    (plain, {"isolation": "container"}, ["isolation='container'", "'loop'", "'process'"]),
    (plain, {"replay": "always"}, ["replay='always'", "'never'", "'keyed'"]),
    (plain, {"name": "two words"}, ["'two words'", "64 letters"]),
    (plain, {"name": ""}, ["''", "64 letters"]),
    (plain, {"name": "x" * 65}, ["64 letters"]),
    (plain, {"name": "line\n"}, ["64 letters"]),
    (lambda: None, {"description": "Do."}, ["'<lambda>'", "name="]),
    (plain, {"timeout": 0}, ["timeout=0", "more than 0"]),
    (plain, {"timeout": -1.5}, ["more than 0"]),
    (plain, {"timeout": float("nan")}, ["more than 0"]),
    (plain, {"timeout": float("inf")}, ["None for no limit"]),
    (plain, {"effects": "none"}, ["effects", "Effects"]),
    (plain, {"risk": "low"}, ["risk", "Risk"]),
    (plain, {"preview": "text"}, ["preview", "function"]),
    (unannotated, {}, ["`text`", "no annotation"]),
    (method_like, {}, ["method", "object.method"]),
    (star, {}, ["`*texts`", "list"]),
    (double_star, {}, ["`**texts`", "dict"]),
    (positional, {}, ["`text`", "positional-only"]),
    (dunder, {}, ["`__text`", "rename"]),
    (two_contexts, {}, ["`one`", "`two`", "ToolContext"]),
    (undefined, {}, ["`two`", "`Unimported`", "module level"]),
    (undocumented, {}, ["docstring", "description="]),
    (only_parameters, {}, ["docstring", "description="]),
    (undocumented, {"description": "  "}, ["docstring", "description="]),
    (generator, {}, ["generator", "emit"]),
    (async_generator, {}, ["generator", "emit"]),
    (half_awaited, {}, ["wraps", "async def"]),
    (functools.partial(plain, "a"), {}, ["not a function", "def"]),
    (Note, {}, ["not a function"]),
    (shout, {}, ["not a function"]),
    (built_in, {}, ["not a function"]),
    (5, {}, ["not a function"]),
]


@pytest.mark.parametrize(("function", "declared", "words"), INVALID, ids=range(len(INVALID)))
def test_what_cannot_work_is_refused_with_what_to_do(
    function: Any, declared: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(InvalidToolError) as caught:
        MAKE(**declared)(function)
    for word in words:
        assert word in str(caught.value)
    assert "cannot be a tool" in str(caught.value)


def test_a_main_module_without_a_file_has_nothing_to_import(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    typed_in = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", typed_in)
    exec('def look(path: str):\n    """Look."""', typed_in.__dict__)
    with pytest.raises(InvalidToolError, match="'__main__' has no file"):
        tool(isolation="process")(typed_in.look)
