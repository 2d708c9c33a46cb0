"""What the page takes the server's words for is what the server says of them itself."""

from __future__ import annotations

import pytest
from web import wire_types

pytestmark = pytest.mark.promise("words.4")


def test_the_page_has_the_types_that_the_server_describes() -> None:
    is_current = wire_types.FILE.read_text() == wire_types.generate()
    assert is_current, f"{wire_types.FILE} is not what the server describes now: run `make types`"


def test_every_event_is_described_with_its_fields() -> None:
    types = wire_types.generate()
    assert "export type LiveEvent =\n  | TextDelta\n" in types
    assert 'export interface TextDelta {\n  type: "text.delta";\n  session_id: string;' in types
    assert "export interface NestedCalls {\n  calls?: readonly NestedCall[];" in types
