"""What a program passes is checked where it enters: refused with what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest

from keryx import NO_EFFECTS, Keryx, tool
from keryx.app.tools import Tools, program_tools
from keryx.command_checks import MAX_TEXT
from keryx.config import load
from keryx.errors import (
    DeveloperMustActError,
    InvalidCommandError,
    InvalidToolError,
    KeryxError,
)
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply
from keryx.tools import toolsets

pytestmark = pytest.mark.promise("mended.12")


@tool(effects=NO_EFFECTS)
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(effects=NO_EFFECTS, name="add")
async def other_add(a: int, b: int) -> int:
    """Add two numbers in another way."""
    return b + a


def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def untyped(*numbers: int) -> int:
    """Takes any number of them, which no schema can say."""
    return sum(numbers)


# -- tools


def test_two_tools_of_one_name_are_refused_and_both_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidToolError, match=r"test_wrong_arguments\.add and .*\.other_add"):
        Keryx(tools=[add, other_add], home=tmp_path)


def test_one_tool_twice_is_one_tool() -> None:
    assert Tools.of_program([add, add]).chosen(None) == ("add",)


def test_a_built_in_tool_with_the_name_of_another_or_of_a_set_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built_in = toolsets.built_in
    config = load(tmp_path, {})
    named_files = tool(name="files")(double)
    cases: list[tuple[list[Any], str]] = [
        ([add, other_add], "two tools"),
        ([named_files], "name of a toolset"),
    ]
    for more, why in cases:

        def with_more(*_: Any, more: list[Any] = more, **__: Any) -> dict[str, list[Any]]:
            return {**built_in(), "more": more}

        monkeypatch.setattr(toolsets, "built_in", with_more)
        with pytest.raises(InvalidToolError, match=why):
            Tools.built_in(config)


async def test_a_plain_typed_function_is_a_tool(tmp_path: Path) -> None:
    model = ScriptedModel(
        [ScriptedReply(calls=[ScriptedCall("double", {"number": 4})]), ScriptedReply(text="8")]
    )
    async with Keryx(model=model, tools=[double], home=tmp_path) as app:
        session = await app.open()
        result = await (await session.send("Double 4")).result()
    assert [(call.tool, call.outcome) for call in result.calls] == [("double", "completed")]


@pytest.mark.parametrize(
    ("tools", "why"),
    [
        ("add", "is not a list of tools"),
        (add, "is not a list of tools"),
        (5, "is not a list of tools"),
        ({"add": add}, "is not a list of tools"),
        ([5], r"tools\[0\] is 5.*pass a typed function"),
        ([add, "double"], r"tools\[1\] is 'double'"),
        ([None], r"tools\[0\] is None"),
        ([untyped], "has no schema"),
        ([len], "wrap it in a `def`"),
        ([lambda: 1], "cannot be a tool"),
        ([ScriptedModel], "is the class ScriptedModel"),
    ],
)
def test_what_is_no_tool_is_refused(tools: Any, why: str) -> None:
    with pytest.raises(InvalidToolError, match=why):
        program_tools(tools)
    with pytest.raises(InvalidToolError, match=why):
        Keryx(tools=tools)


def test_a_text_beside_a_type_describes_the_parameter() -> None:
    def order(
        count: Annotated[int, "How many."],
        names: list[Annotated[str, "Who."]],
        least: Annotated[int, msgspec.Meta(ge=0), "At least."] = 0,
        said: Annotated[int, msgspec.Meta(description="By Meta."), "By text."] = 0,
    ) -> str:
        """Order something.

        Args:
            count: From the docstring.
        """
        return f"{count} {names} {least} {said}"

    properties = tool(order).parameters["properties"]
    assert properties["count"]["description"] == "How many."
    assert properties["names"]["items"]["description"] == "Who."
    assert properties["least"] == {
        "type": "integer",
        "minimum": 0,
        "description": "At least.",
        "default": 0,
    }
    assert properties["said"]["description"] == "By Meta."


# -- the arguments of Keryx(...) and open(...)

WRONG: dict[str, tuple[Any, ...]] = {
    "model": (5, b"x", [], ScriptedModel, object()),
    "workspace": (5, None, b"x", "", "a\0b"),
    "home": (5, b"x", "", "a\0b", []),
    "resume": (None, 1, "yes"),
    "take_over": (None, 1, "yes"),
    "titles": (None, 1, "yes"),
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in WRONG.items() for value in values]
)
def test_a_wrong_argument_of_keryx_is_refused_by_name(name: str, value: Any) -> None:
    wrong: dict[str, Any] = {name: value}
    with pytest.raises(DeveloperMustActError, match=f"{name}=.* must be"):
        Keryx(**wrong)


WRONG_OPENINGS: dict[str, tuple[Any, ...]] = {
    "session_id": (5, b"s", "", ["s"]),
    "tools": ("read_file", 5, [5], [None], ["\ud800"]),
    "effort": (3, b"low", ["low"], object(), "\ud800", "banana", "High"),
    "personality": (3, {}, "\udfff"),
    "profile": (3, ()),
    "approvals": ("yolo", 1, "", True),
    "read_only": (None, 1, "no"),
}


async def test_a_wrong_argument_of_open_is_refused_and_makes_no_session(tmp_path: Path) -> None:
    async with Keryx(model="scripted:demo", home=tmp_path) as app:
        for name, values in WRONG_OPENINGS.items():
            for value in values:
                wrong: dict[str, Any] = {name: value}
                with pytest.raises(KeryxError, match=r"\S"):
                    await app.open(**wrong)
        assert await app.store.sessions() == []
    async with Keryx(model="scripted:demo", home=tmp_path) as app:
        session = await app.open(effort="low", approvals="never", tools=["read_file"])
        settings: tuple[dict[str, Any], ...] = ({"read_only": True}, {"tools": []})
        for setting in settings:
            with pytest.raises(DeveloperMustActError, match=r"session\.change"):
                await app.open(session.session_id, **setting)
        with pytest.raises(InvalidCommandError, match=r"'banana'.*none, minimal, low, medium"):
            await session.change(effort="banana")
        assert (await session.view()).settings.effort == "low"
        assert (await (await session.send("Hi")).result()).outcome == "completed"


async def test_a_wrong_argument_of_an_attached_program_is_refused(tmp_path: Path) -> None:
    async with Keryx(model="scripted:demo", home=tmp_path), Keryx(home=tmp_path) as second:
        wrong: Any = 3
        with pytest.raises(DeveloperMustActError, match=r"effort.*none, minimal, low, medium"):
            await second.open(effort=wrong)
        session = await second.open()
        unsendable: Any = object()
        with pytest.raises(DeveloperMustActError, match="SendMessage"):
            await session.send(unsendable)
        with pytest.raises(DeveloperMustActError, match="surrogate"):
            await session.send("\ud800")


async def test_a_wrong_argument_of_upload_or_delete_is_refused(tmp_path: Path) -> None:
    wrong: Any
    async with Keryx(model="scripted:demo", home=tmp_path) as app:
        for wrong in (("text", "a.txt", "text/plain"), (b"x", 5, "text/plain"), (b"x", "a", None)):
            with pytest.raises(DeveloperMustActError, match="must be"):
                await app.upload(*wrong)
        wrong = 5
        with pytest.raises(DeveloperMustActError, match="session_id=5"):
            await app.delete(wrong)


@pytest.mark.parametrize(
    ("method", "arguments", "says"),
    [
        ("send", {"text": " \n"}, "the message is empty; write a text, or attach a file"),
        ("steer", {"text": ""}, "the message is empty"),
        ("send", {"text": "x" * (MAX_TEXT + 1)}, r"may have 1,000,000; attach it as a file"),
        ("send", {"text": "hi", "workspace": "/nowhere"}, "the folder '/nowhere' doesn't exist"),
        ("change", {"workspace": "/nowhere"}, "the folder '/nowhere' doesn't exist"),
        ("change", {"workspace": "/etc/hostname"}, "is not a folder"),
        ("change", {"model": "nope"}, "the model 'nope' is not configured"),
        ("change", {"model": "nowhere:nope"}, "'nowhere:nope' is not configured"),
    ],
)
async def test_a_program_is_refused_what_the_server_refuses(
    method: str, arguments: dict[str, Any], says: str, tmp_path: Path
) -> None:
    async with Keryx(model=ScriptedModel([]), home=tmp_path, workspace=tmp_path) as app:
        session = await app.open()
        before = await session.view()
        with pytest.raises(KeryxError, match=says):
            await getattr(session, method)(**arguments)
        assert await session.view() == before
