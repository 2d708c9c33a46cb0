"""What the tests of scripts in whole sessions share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.app.scripting import SECRET, Den


@pytest.fixture
def den(monkeypatch: pytest.MonkeyPatch) -> Iterator[Den]:
    """A user's folders; the host is started by that user, with a secret in its environment."""
    new_den = Den()
    monkeypatch.setenv("HOME", str(new_den.outside))
    monkeypatch.setenv("NOTE", SECRET)
    yield new_den
    new_den.close()
