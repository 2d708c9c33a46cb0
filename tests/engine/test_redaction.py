"""Values of secrets reach nobody, however they are cut."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keryx.engine.redaction import SHORTEST, Redactor, StreamRedactor
from keryx.messages import Json, Text

pytestmark = pytest.mark.promise("tools.7")

KEY = "sk-live-0123456789"
OTHER = "sk-live-0123456789-and-more"
redactor = Redactor({"API_KEY": KEY, "OTHER_KEY": OTHER, "SHORT": "abc"})


def stream(text: str, cuts: list[int]) -> str:
    """The text as it comes out when it goes in cut at these places."""
    data, out, at = text.encode(), b"", 0
    through = StreamRedactor(redactor)
    for cut in [*sorted(cut % (len(data) + 1) for cut in cuts), len(data)]:
        out += through.feed(data[at:cut])
        at = cut
    return (out + through.end()).decode()


def test_a_value_is_replaced_by_its_name() -> None:
    assert redactor.text(f"key={KEY};") == "key=[redacted: API_KEY];"
    assert redactor.text("abc is no secret") == "abc is no secret", "too short to tell"


def test_the_longer_of_two_values_wins() -> None:
    assert redactor.text(OTHER) == "[redacted: OTHER_KEY]"


@pytest.mark.parametrize(
    "said", [f'{{"k":"{KEY}"}}', KEY.replace("-", "%2D"), f"line one\n{KEY}\nline three"]
)
def test_escaped_and_embedded_forms_are_found(said: str) -> None:
    quoted = Redactor({"API_KEY": KEY, "MULTI": f"first line of it\r\n{KEY}"})
    assert "0123456789" not in quoted.text(said.replace("%2D", "-"))


def test_results_of_tools_are_redacted_in_every_part() -> None:
    parts = (Text(f"a {KEY}"), Json(msgspec.Raw(msgspec.json.encode({"k": KEY}))))
    assert KEY not in str(redactor.content(parts))


@given(
    st.lists(st.sampled_from(["x", " ", KEY, OTHER, KEY[:-1], "sk-", "é"]), max_size=12),
    st.lists(st.integers(0, 400), max_size=30),
)
def test_no_cutting_lets_a_value_through(pieces: list[str], cuts: list[int]) -> None:
    text = "".join(pieces)
    shown = stream(text, cuts)
    assert KEY not in shown
    assert shown == stream(text, []), "where it is cut makes no difference"


@given(st.text(alphabet="abc \n", max_size=200), st.lists(st.integers(0, 200), max_size=20))
def test_other_text_passes_unchanged(text: str, cuts: list[int]) -> None:
    assert stream(text, cuts) == text


def test_a_value_that_ends_in_the_middle_is_not_shown_in_part() -> None:
    assert stream(f"key={KEY[:-1]}", []) == "key=[redacted]"
    assert stream(f"key={KEY[: SHORTEST - 1]}", []) == f"key={KEY[: SHORTEST - 1]}"
