"""Markdown becomes text with formatting: nothing is lost, and every message fits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keryx.gateway.delivery.flood_gate import FloodGate
from keryx.gateway.formatting.markdown import parse
from keryx.gateway.formatting.splitting import split
from tests.gateway.bot_api.rules import utf16

pytestmark = pytest.mark.promise("chat.5")


@given(st.text(max_size=300))
def test_any_text_can_be_formatted(text: str) -> None:
    for content in split(parse(text), 50):
        assert 0 < utf16(content.text) <= 50
        assert all(span.start + span.length <= utf16(content.text) for span in content.spans)


def test_code_that_is_split_stays_code() -> None:
    code = "\n".join(f"line {number}" for number in range(40))
    contents = split(parse(f"```python\n{code}\n```"), 100)
    assert len(contents) > 2
    assert all([span.kind for span in content.spans] == ["pre"] for content in contents)
    assert "\n".join(content.text for content in contents) == code


def test_a_gate_lets_a_few_calls_through_and_stays_closed_as_long_as_asked() -> None:
    gate = FloodGate(1.0, 3)
    for _ in range(3):
        assert gate.delay(100.0) == 0.0
        gate.count(100.0)
    assert gate.delay(100.0) == 1.0
    gate.close(100.0, 51.0)
    assert gate.delay(101.0) == 50.0
    assert gate.delay(151.0) == 0.0


@pytest.mark.parametrize(
    ("markdown", "text", "addresses"),
    [
        ("[`a.py`](https://example.com/a)", "a.py", ["https://example.com/a"]),
        ("**b [`x`](https://example.com) c**", "b x c", ["https://example.com"]),
        ("see [docs][1]\n\n[1]: https://example.com", "see docs", ["https://example.com"]),
        ("see\n\n[1]: https://example.com", "see\n\n[1]: https://example.com", []),
        (f"{'>' * 30} deep", f"{'>' * 30} deep", []),
    ],
)
def test_no_address_and_no_deep_text_is_lost(
    markdown: str, text: str, addresses: list[str]
) -> None:
    formatted = parse(markdown)
    assert formatted.text == text
    assert [mark.value for mark in formatted.marks if mark.kind == "text_link"] == addresses
