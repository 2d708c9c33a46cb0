"""An alarm of the script may come while a connection is being made: nothing is said of it."""

from __future__ import annotations

import pytest

from keryx_tools._ways.sockets import Connection


def test_a_connection_that_was_never_made_goes_in_silence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    half_made = Connection.__new__(Connection)
    half_made.close()
    del half_made
    assert capsys.readouterr() == ("", "")
