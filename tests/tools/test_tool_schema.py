"""From types to schemas, and that the parser agrees with what the schema promises."""

import dataclasses
import datetime as dt
import decimal
import enum
import subprocess
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict

import msgspec
import pydantic
import pytest

from keryx.errors import InvalidArgumentsError, InvalidToolError
from keryx.tools.function import FunctionTool, tool


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(msgspec.Struct, forbid_unknown_fields=True):
    x: int
    near: "list[Point]" = []


@dataclasses.dataclass
class Size:
    width: int
    unit: str = "px"


class Range(TypedDict):
    start: int
    end: NotRequired[int]


class Item(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    sku: str
    count: int = 1


class Order(pydantic.BaseModel):
    items: list[Item]
    due: dt.date | None = None
    parent: Optional["Order"] = None


class Hook(pydantic.BaseModel):
    call: Callable[[], int]


class Cat(msgspec.Struct, tag="cat"):
    lives: int


class Dog(msgspec.Struct, tag="dog"):
    name: str


def tool_for(kind: Any, **default: Any) -> FunctionTool[..., Any]:
    """A tool with the one parameter `value`."""

    def take(value: Any) -> Any:
        return value

    take.__defaults__ = tuple(default.values())
    take.__annotations__ = {"value": kind}
    return tool(description="Takes a value.")(take)


INTEGER = {"type": "integer"}
STRING = {"type": "string"}

POINT: dict[str, Any] = {
    "title": "Point",
    "type": "object",
    "properties": {
        "x": INTEGER,
        "near": {"type": "array", "items": {"$ref": "#/$defs/Point"}, "default": []},
    },
    "required": ["x"],
    "additionalProperties": False,
}
SIZE = {
    "title": "Size",
    "type": "object",
    "properties": {"width": INTEGER, "unit": {"type": "string", "default": "px"}},
    "required": ["width"],
}
RANGE = {
    "title": "Range",
    "type": "object",
    "properties": {"start": INTEGER, "end": INTEGER},
    "required": ["start"],
}
ITEM = {
    "title": "Item",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "sku": {"title": "Sku", "type": "string"},
        "count": {"title": "Count", "type": "integer", "default": 1},
    },
    "required": ["sku"],
}


def array(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


SCHEMAS: list[tuple[Any, dict[str, Any], dict[str, Any], list[Any], list[Any]]] = [
    # type, schema of the parameter, "$defs", values that fit, values that do not
    (str, STRING, {}, ["", "a\x00b", "é"], [1, None, []]),
    (int, INTEGER, {}, [0, -5, 10**30], ["5", 1.5, True, None]),
    (float, {"type": "number"}, {}, [1, 1.5], ["1.5", True]),
    (bool, {"type": "boolean"}, {}, [True], [0, "true", None]),
    (None, {"type": "null"}, {}, [None], [0, ""]),
    (Any, {}, {}, [None, 1, {"a": [1]}], []),
    (list[int], array(INTEGER), {}, [[], [1]], [["1"], {}, "1"]),
    (Sequence[str], array(STRING), {}, [["a"]], ["a", [1]]),
    (set[int], array(INTEGER) | {"uniqueItems": True}, {}, [[1, 2]], [["1"]]),
    (
        tuple[int, str],
        {
            "type": "array",
            "minItems": 2,
            "maxItems": 2,
            "prefixItems": [INTEGER, STRING],
            "items": False,
        },
        {},
        [[1, "a"]],
        [[1], [1, "a", 2], ["a", 1]],
    ),
    (
        dict[str, int],
        {"type": "object", "additionalProperties": INTEGER},
        {},
        [{}, {"a": 1}],
        [{"a": "1"}, []],
    ),
    (
        int | None,
        {"anyOf": [INTEGER, {"type": "null"}]},
        {},
        [1, None],
        ["1"],
    ),
    (int | str, {"anyOf": [INTEGER, STRING]}, {}, [1, "1"], [None, []]),
    (Literal["a", "b"], {"enum": ["a", "b"]}, {}, ["a"], ["c", 1]),
    (Color, ref("Color"), {"Color": {"title": "Color", "enum": ["blue", "red"]}}, ["red"], ["RED"]),
    (Point, ref("Point"), {"Point": POINT}, [{"x": 1, "near": [{"x": 2}]}], [{"y": 1}, {}]),
    (list[Point], array(ref("Point")), {"Point": POINT}, [[{"x": 1}]], [[{"x": "1"}]]),
    (Size, ref("Size"), {"Size": SIZE}, [{"width": 1}], [{"unit": "px"}]),
    (Range, ref("Range"), {"Range": RANGE}, [{"start": 1}], [{"end": 1}]),
    (
        Annotated[int, msgspec.Meta(ge=1, le=9, description="A digit.")],
        INTEGER | {"minimum": 1, "maximum": 9, "description": "A digit."},
        {},
        [1, 9],
        [0, 10],
    ),
    (dt.datetime, STRING, {}, ["2024-01-02T03:04:05Z"], ["yesterday", []]),
    (dt.date, STRING | {"format": "date"}, {}, ["2024-01-02"], ["today"]),
    (uuid.UUID, STRING | {"format": "uuid"}, {}, [str(uuid.UUID(int=1))], ["1"]),
    (decimal.Decimal, STRING | {"format": "decimal"}, {}, ["1.50"], ["x"]),
    (bytes, STRING | {"contentEncoding": "base64"}, {}, ["aGk="], ["!"]),
    (Item, ref("Item"), {"Item": ITEM}, [{"sku": "a"}], [{"sku": 1}, {"sku": "a", "n": 1}, 3]),
    (
        Item | None,
        {"anyOf": [ref("Item"), {"type": "null"}]},
        {"Item": ITEM},
        [None, {"sku": "a", "count": 2}],
        [{"sku": "a", "count": "2"}],
    ),
    (list[Item], array(ref("Item")), {"Item": ITEM}, [[{"sku": "a"}]], [[{}]]),
    (
        dict[str, Item],
        {"type": "object", "additionalProperties": ref("Item")},
        {"Item": ITEM},
        [{"k": {"sku": "a"}}],
        [{"k": {}}],
    ),
]


@pytest.mark.parametrize(
    ("kind", "schema", "defs", "good", "bad"), SCHEMAS, ids=[str(row[0]) for row in SCHEMAS]
)
def test_a_type_gives_a_schema_that_the_parser_keeps(
    kind: Any, schema: dict[str, Any], defs: dict[str, Any], good: list[Any], bad: list[Any]
) -> None:
    function_tool = tool_for(kind)
    assert function_tool.parameters == {
        "type": "object",
        "properties": {"value": schema},
        "required": ["value"],
        "additionalProperties": False,
    } | ({"$defs": defs} if defs else {})
    for value in good:
        function_tool.parse(msgspec.json.encode({"value": value}))
        function_tool.parse({"value": value})
    for value in bad:
        for arguments in (msgspec.json.encode({"value": value}), {"value": value}):
            with pytest.raises(InvalidArgumentsError, match=r"`\$\.value"):
                function_tool.parse(arguments)


@pytest.mark.parametrize(
    ("kind", "default", "shown"),
    [
        (int, 3, 3),
        (int | None, None, None),
        (Color, Color.RED, "red"),
        (list[int], [1, 2], [1, 2]),
        (Sequence[str], (), []),
        (set[str], {"b", "a"}, ["a", "b"]),
        (dict[int, str], {1: "a"}, {"1": "a"}),
        (Point, Point(1), {"x": 1, "near": []}),
        (Size, Size(2), {"width": 2, "unit": "px"}),
        (Item, Item(sku="a"), {"sku": "a", "count": 1}),
        (dt.date, dt.date(2024, 1, 2), "2024-01-02"),
    ],
)
def test_a_default_is_in_the_schema_and_in_the_arguments(
    kind: Any, default: Any, shown: Any
) -> None:
    function_tool = tool_for(kind, value=default)
    assert function_tool.parameters["required"] == []
    schema = msgspec.json.decode(msgspec.json.encode(function_tool.parameters))
    assert schema["properties"]["value"]["default"] == shown
    assert function_tool.parse("{}").value == default


def test_a_default_that_json_cannot_say_is_left_out_of_the_schema() -> None:
    function_tool = tool_for(float, value=float("inf"))
    assert function_tool.parameters["properties"]["value"] == {"type": "number"}
    assert function_tool.parse("{}").value == float("inf")
    unset = tool_for(int | msgspec.UnsetType, value=msgspec.UNSET)
    assert unset.parameters["properties"]["value"] == INTEGER
    assert unset.parse("{}").value is msgspec.UNSET


@pytest.mark.parametrize("default", [[1], {"a": [1]}, Point(1), Size(1), Item(sku="a")])
def test_calls_do_not_share_a_mutable_default(default: Any) -> None:
    function_tool = tool_for(
        Any if isinstance(default, list | dict) else type(default), value=default
    )
    first, second = function_tool.parse("{}").value, function_tool.parse("{}").value
    assert first == second == default
    assert first is not second
    assert first is not default


def test_the_schemas_of_models_come_with_all_that_they_refer_to() -> None:
    function_tool = tool_for(dict[str, list[Order]])
    assert function_tool.parameters["$defs"].keys() == {"Order", "Item"}
    assert_refs_resolve(function_tool.parameters)
    order = function_tool.parse(
        '{"value": {"k": [{"items": [{"sku": "a"}], "due": "2024-01-02"}]}}'
    )
    assert order.value == {"k": [Order(items=[Item(sku="a")], due=dt.date(2024, 1, 2))]}


def test_a_model_and_a_struct_of_the_same_name_are_told_apart() -> None:
    other = msgspec.defstruct("Item", [("weight", int)])
    holder = msgspec.defstruct("Holder", [("mine", other), ("theirs", list[Order])])
    function_tool = tool_for(holder)
    assert_refs_resolve(function_tool.parameters)
    assert function_tool.parameters["$defs"]["Item"]["properties"].keys() == {"weight"}
    assert function_tool.parameters["$defs"]["Item_2"] == ITEM
    parsed = function_tool.parse('{"value": {"mine": {"weight": 1}, "theirs": [{"items": []}]}}')
    assert parsed.value.theirs == [Order(items=[])]


def test_a_type_named_like_the_arguments_themselves_is_kept() -> None:
    function_tool = tool_for(msgspec.defstruct("Arguments", [("inner", int)]))
    assert_refs_resolve(function_tool.parameters)
    assert function_tool.parse('{"value": {"inner": 1}}').value.inner == 1


def test_tagged_unions_are_supported() -> None:
    function_tool = tool_for(Cat | Dog)
    assert function_tool.parse('{"value": {"type": "dog", "name": "Rex"}}').value == Dog("Rex")
    with pytest.raises(InvalidArgumentsError, match=r"`\$\.value`: missing required field `lives`"):
        function_tool.parse('{"value": {"type": "cat"}}')


def test_a_description_stands_beside_a_reference() -> None:
    function_tool = tool_for(Annotated[Item, msgspec.Meta(description="What to buy.")])
    assert function_tool.parameters["properties"]["value"] == {
        "$ref": "#/$defs/Item",
        "description": "What to buy.",
    }


def test_a_root_model_is_a_value_of_its_own_kind() -> None:
    function_tool = tool_for(pydantic.RootModel[list[int]])
    assert_refs_resolve(function_tool.parameters)
    assert function_tool.parse('{"value": [1, 2]}').value.root == [1, 2]


@pytest.mark.parametrize(
    "name", ["type", "id", "name", "schema", "self_", "cls", "mro", "_x", "kw_only", "args"]
)
def test_any_parameter_name_works(name: str) -> None:
    def take(**given: int) -> dict[str, int]:
        return given

    namespace: dict[str, Any] = {"take": take}
    exec(f"def call({name}: int):\n    return take({name}={name})", namespace)
    function_tool = tool(description="Takes one.")(namespace["call"])
    assert list(function_tool.parameters["properties"]) == [name]
    args = function_tool.parse({name: 1})
    assert getattr(args, name) == 1
    assert function_tool.invoke(args, context=object()) == {name: 1}  # pyright: ignore[reportArgumentType]  # it takes none


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (complex, ["`value`", "complex"]),
        (object, ["`value`", "object"]),
        (Callable[[], int], ["`value`", "Callable"]),
        (list[complex], ["`value`", "complex"]),
        (Point | Size, ["`value`", "more than one dict-like"]),
        (Item | str, ["`value`", "custom type"]),
        (
            Annotated[complex, msgspec.Meta(extra_json_schema={"type": "string"})],
            ["`value`", "complex"],
        ),
        (list["Nowhere"], ["`value`", "`Nowhere`"]),  # pyright: ignore[reportUndefinedVariable]  # noqa: F821  # it is undefined on purpose
        (list[Hook], ["`value`", "JsonSchema"]),
        ("not a type", ["`value`", "not a type"]),
        (msgspec.defstruct("Lost", [("inner", "Nowhere")]), ["`value`", "`Nowhere`"]),
        (Annotated[int, pydantic.Field(ge=1)], ["`value`", "msgspec.Meta"]),
        (list[Annotated[int, pydantic.Field(ge=1)]], ["`value`", "msgspec.Meta"]),
    ],
)
def test_an_unsupported_type_is_refused_with_its_parameter(kind: Any, words: list[str]) -> None:
    with pytest.raises(InvalidToolError) as caught:
        tool_for(kind)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "default", "words"),
    [
        (str, None, "`value: ... | None`"),
        (int, "3", "does not fit"),
        (Annotated[int, msgspec.Meta(ge=1)], 0, "does not fit"),
        (str, object(), "does not fit"),
        (Item, {"sku": 1}, "does not fit"),
    ],
)
def test_a_default_that_does_not_fit_its_type_is_refused(
    kind: Any, default: Any, words: str
) -> None:
    with pytest.raises(InvalidToolError) as caught:
        tool_for(kind, value=default)
    assert words in str(caught.value)


def assert_refs_resolve(schema: Mapping[str, Any]) -> None:
    text = msgspec.json.encode(schema).decode()
    named = {part.split('"')[0] for part in text.split('"#/$defs/')[1:]}
    assert named == set(schema["$defs"])


def test_the_module_is_importable_without_heavy_parts() -> None:
    code = (
        "import sys, keryx.tools.function; "
        "print([m for m in ('pydantic', 'aiohttp', 'uvloop') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
