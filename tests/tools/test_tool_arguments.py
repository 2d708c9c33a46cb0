"""What a model may send, and what it is told if that does not fit."""

from __future__ import annotations

import datetime as dt
import types
from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Any, Literal, cast

import msgspec
import pydantic
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from keryx.errors import InvalidArgumentsError
from keryx.tools.function import tool
from keryx.tools.function.arguments import ARGUMENTS_LIMIT
from keryx.tools.function.faults import MESSAGE_LIMIT


class Level(Enum):
    LOW = "low"
    HIGH = "high"


class Line(msgspec.Struct, forbid_unknown_fields=True):
    product: str
    amount: int = 1


class Address(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    street: str
    number: int
    since: dt.date | None = None


@tool
async def order(
    customer: str,
    lines: list[Line],
    *,
    address: Address | None = None,
    level: Level = Level.LOW,
    speed: Literal["slow", "fast"] = "slow",
    discount: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0,
    labels: dict[str, int] | None = None,
    others: dict[str, Address] | None = None,
    note: Any = None,
) -> str:
    """Order something."""
    return customer


FIT = '"customer": "Ann", "lines": []'


def test_text_bytes_and_mappings_give_the_same_arguments() -> None:
    text = '{"customer": "Ann", "lines": [{"product": "pen"}], "level": "high"}'
    parsed = order.parse(text)
    assert parsed.lines == [Line("pen")]
    assert parsed.level is Level.HIGH
    assert parsed == order.parse(text.encode())
    assert parsed == order.parse(msgspec.json.decode(text))
    assert parsed == order.parse(types.MappingProxyType(msgspec.json.decode(text)))


@pytest.mark.parametrize("nothing", ["", " \n", b"", b"  ", "{}", b"{}", {}])
def test_nothing_stands_for_no_arguments(nothing: bytes | str | Mapping[str, Any]) -> None:
    @tool
    def now() -> str:
        """Tell the time."""
        return "noon"

    assert now.invoke(now.parse(nothing), cast(Any, None)) == "noon"


BAD: list[tuple[Any, list[str]]] = [
    # JSON that is none
    ('{"customer": "Ann", ', ["not valid JSON", "line 1, column 21", "complete JSON object"]),
    ('{"customer":\n  Ann}', ["not valid JSON", "line 2, column 3", "Ann"]),
    ("{'customer': 'Ann'}", ["not valid JSON", "double quotes", "line 1, column 2"]),
    ("{" + FIT + "} and more", ["not valid JSON", "Extra data", "column 34"]),
    ('{"customer": "two\nlines"}', ["not valid JSON", "control character", "column 18"]),
    ('{"customer": "\x00"}', ["not valid JSON", "control character"]),
    ("```json\n{}\n```", ["not valid JSON", "line 1, column 1"]),
    ("\ufeff{}", ["not valid JSON", "BOM"]),
    ('{"note": NaN}', ["not valid JSON", "NaN"]),
    ('{"customer": "\\ud800 "}', ["not valid JSON", "surrogate"]),
    ('{"customer": 5, "lines": [}', ["not valid JSON", "column 27"]),
    ('{"customer": "\ud800"}', ["surrogate", "character 14"]),
    (b'{"customer": "\xff"}', ["not valid UTF-8 at byte 14"]),
    # not an object
    ("[1, 2]", ["`$`", "`object`", "`array`", "[1,2]", "one JSON object"]),
    ("null", ["`$`", "`object`", "`null`"]),
    ('"{}"', ["`$`", "`object`", "`str`"]),
    # wrong values
    ("{" + FIT + ', "customer": 5}', ["`$.customer`", "Expected `str`, got `int`", "5"]),
    (
        '{"customer": "Ann", "lines": [{"product": "a"}, {"product": "b", "amount": "5"}]}',
        ["`$.lines[1].amount`", "Expected `int`, got `str`", '"5"'],
    ),
    ("{" + FIT + ', "speed": "medium"}', ["`$.speed`", '"slow"', '"fast"', '"medium"']),
    ("{" + FIT + ', "level": "LOW"}', ["`$.level`", '"low"', '"high"', '"LOW"']),
    ("{" + FIT + ', "discount": 2}', ["`$.discount`", "<= 1", "2"]),
    ("{" + FIT + ', "discount": 1e999}', ["`$.discount`", "out of range"]),
    ("{" + FIT + ', "labels": {"a": 1, "b": "2"}}', ["`$.labels[...]`", "`int`", "`str`"]),
    # fields
    ("{}", ["`$`", "missing required fields `customer`, `lines`"]),
    (
        '{"custmer": "Ann", "line": [], "x": 1}',
        [
            "missing required fields `customer`, `lines`",
            "unknown fields `custmer` (did you mean `customer`?)",
            "`line` (did you mean `lines`?), `x`",
            "allowed: `customer`, `lines`, `address`",
        ],
    ),
    (
        '{"customer": "Ann", "lines": [{"produkt": "a", "color": "red"}]}',
        [
            "`$.lines[0]`",
            "missing required field `product`",
            "unknown fields `produkt` (did you mean `product`?), `color`",
            "allowed: `product`, `amount`",
        ],
    ),
    # models
    (
        "{" + FIT + ', "address": {"number": "5", "sreet": "Elm"}}',
        [
            "`$.address.number`",
            "valid integer, got `str`",
            "`$.address`: missing required field `street`",
            "unknown field `sreet` (did you mean `street`?)",
            "allowed: `street`, `number`, `since`",
        ],
    ),
    ("{" + FIT + ', "address": 5}', ["`$.address`", "object"]),
    (
        "{" + FIT + ', "others": {"a": {"street": "Elm", "number": 1}, "b": {"street": "Elm"}}}',
        ["`$.others[...]`: missing required field `number`"],
    ),
    # too much
    ("[" * 100_000, ["Expected `object`, got `array`"]),
    ('{"note": ' + "[" * 100_000, ["nested too deep"]),
    ('{"customer": ' + "[" * 100_000, ["`$.customer`", "Expected `str`, got `array`"]),
    ("{" + FIT + ', "address": ' + "[" * 100_000, ["nested too deep"]),
    ({"customer": "Ann", "lines": [], "address": {"street": object()}}, ["`$.address`"]),
    ({"customer": "Ann", "lines": "none"}, ["`$.lines`", "`array`", "`str`"]),
    ({1: 2}, ["`str`", "key"]),
    ({"customer\ud800": 1}, ["UTF-8"]),
    ({"customer": object(), "lines": []}, ["`$.customer`", "object"]),
]


@pytest.mark.parametrize(("arguments", "fragments"), BAD, ids=range(len(BAD)))
def test_the_model_is_told_what_to_do_better(arguments: Any, fragments: list[str]) -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        order.parse(arguments)
    text = str(caught.value)
    assert text.startswith("arguments of `order`: ")
    for fragment in fragments:
        assert fragment in text


HUGE = "x" * 1_000_000


@pytest.mark.parametrize(
    "arguments",
    [
        msgspec.json.encode({"customer": [HUGE], "lines": []}),
        msgspec.json.encode({HUGE: 1}),
        msgspec.json.encode({f"key{number}": 1 for number in range(100_000)}),
        msgspec.json.encode({"customer": "Ann", "lines": [], "speed": HUGE}),
        msgspec.json.encode({"customer": "Ann", "lines": [], "level": HUGE}),
        msgspec.json.encode({"customer": "Ann", "lines": [], "address": {HUGE: HUGE}}),
        msgspec.json.encode({"customer": "Ann", "lines": [], "labels": {HUGE: HUGE}}),
        msgspec.json.encode(
            {"customer": "A", "lines": [], "address": {f"k{n}": n for n in range(10_000)}}
        ),
        '{"customer": "' + HUGE,
        {"customer": HUGE.encode(), "lines": []},
    ],
    ids=range(10),
)
def test_what_the_model_is_told_is_short(arguments: Any) -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        order.parse(arguments)
    assert len(str(caught.value)) <= MESSAGE_LIMIT
    assert "x" * 100 not in str(caught.value)


@pytest.mark.parametrize("kind", ["ascii", "wide", "bytes"])
def test_too_large_a_text_is_refused_before_it_is_read(kind: str) -> None:
    character = "é" if kind == "wide" else " "
    text = character * (ARGUMENTS_LIMIT // len(character.encode()) + 1)
    size = len(text.encode())
    with pytest.raises(InvalidArgumentsError) as caught:
        order.parse(text.encode() if kind == "bytes" else text)
    assert f"{size} bytes" in str(caught.value)
    assert str(ARGUMENTS_LIMIT) in str(caught.value)


def test_a_text_of_just_the_limit_is_read() -> None:
    text = "{" + FIT + "}"
    assert order.parse(text + " " * (ARGUMENTS_LIMIT - len(text))).customer == "Ann"


def test_unusual_characters_are_fine() -> None:
    strange = "\x00\x1b\u2028\U0001f600\x7f"
    assert order.parse(msgspec.json.encode({"customer": strange, "lines": []})).customer == strange
    assert order.parse('{"customer": "\\ud83d\\ude00", "lines": []}').customer == "\U0001f600"


def test_models_are_as_strict_as_the_rest_and_take_dates_as_text() -> None:
    address = {"street": "Elm", "number": 5, "since": "2024-01-02"}
    built = Address(street="Elm", number=5, since=dt.date(2024, 1, 2))
    for given_address in (address, built):
        parsed = order.parse({"customer": "Ann", "lines": [], "address": given_address})
        assert parsed.address == built
    parsed = order.parse(msgspec.json.encode({"customer": "A", "lines": [], "address": address}))
    assert parsed.address == built


def test_the_reason_is_kept_for_developers() -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        order.parse("{}")
    assert isinstance(caught.value.__cause__, msgspec.ValidationError)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
fields = st.dictionaries(
    st.sampled_from([*order.parameters["properties"], "custmer"]),
    plain
    | st.sampled_from(["slow", "low"])
    | st.dictionaries(st.sampled_from(["street", "number", "product", "x"]), plain, max_size=3)
    | st.lists(st.fixed_dictionaries({"product": st.text()}), max_size=2),
)


def parses_or_explains(arguments: Any) -> None:
    try:
        parsed = order.parse(arguments)
    except InvalidArgumentsError as error:
        text = str(error)
    else:
        assert isinstance(parsed.customer, str)
        assert all(isinstance(line, Line) for line in parsed.lines)
        assert parsed.address is None or isinstance(parsed.address, Address)
        return
    assert 0 < len(text) <= MESSAGE_LIMIT
    text.encode()


@given(plain | fields)
@example({"customer": "Ann", "lines": []})
def test_any_json_is_parsed_or_explained(value: Any) -> None:
    parses_or_explains(msgspec.json.encode(value))
    parses_or_explains(value)


any_text = st.text(st.characters())  # lone surrogates too


@given(st.dictionaries(any_text | st.just("customer"), any_text | plain, max_size=3))
@example({"customer": "\ud800", "lines": [], "speed": "\ud800", "address": {"street": "\ud800"}})
def test_any_mapping_is_parsed_or_explained(arguments: dict[str, Any]) -> None:
    parses_or_explains(arguments)


@given(any_text | st.binary() | st.text(alphabet='{}[]":,\\u0d8e1 \n').map("{{{}".format))
def test_any_text_is_parsed_or_explained(text: str | bytes) -> None:
    parses_or_explains(text)
