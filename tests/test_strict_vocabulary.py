"""Wrong types and all of `str` into every command and every fact: read back as it was, or refused.

The cases are generated from the types themselves, so a new command or event cannot be forgotten.
"""

from __future__ import annotations

import datetime as dt
import decimal
from contextlib import suppress
from typing import Any, get_args

import hypothesis
import msgspec
import pytest
from hypothesis import strategies as st

from keryx import commands as cm
from keryx import events as ev
from keryx.command_checks import checked
from keryx.errors import InvalidCommandError, InvalidFactError
from keryx.events import LoggedEvent
from tests import pinned
from tests import test_commands as pinned_commands
from tests.pinned_models import PINNED_MODELS

PINNED = [*pinned.PINNED, *PINNED_MODELS]

TEXTS = st.text(st.characters(exclude_categories=()), max_size=20)
"""All of `str`, lone surrogates included."""
WRONG = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    TEXTS,
    st.binary(max_size=5),
    st.lists(st.integers(), max_size=2),
    st.tuples(TEXTS),
    st.dictionaries(TEXTS, st.integers(), max_size=2),
    st.sampled_from([object(), {1, 2}, len, dt.datetime.now(dt.UTC)]),
    st.just(decimal.Decimal("1.5")),
)
COMMANDS = [command for command, _ in pinned_commands.PINNED]
FACTS = [event for event, _ in PINNED if isinstance(event, get_args(LoggedEvent))]


def spoiled(data: st.DataObject, whole: msgspec.Struct) -> Any:
    """The same, with one or two fields of any type, or any text."""
    names = st.lists(st.sampled_from(whole.__struct_fields__), min_size=1, max_size=2)
    values = {name: data.draw(st.one_of(TEXTS, WRONG)) for name in data.draw(names)}
    return msgspec.structs.replace(whole, **values)


@pytest.mark.promise("mended.6", "mended.11")
@pytest.mark.parametrize("whole", COMMANDS, ids=lambda whole: type(whole).__name__)
@hypothesis.given(data=st.data())
def test_a_command_is_read_back_as_it_was_or_refused(
    whole: cm.Command, data: st.DataObject
) -> None:
    assert checked(whole) == whole
    command = spoiled(data, whole)
    with suppress(InvalidCommandError):
        strict = checked(command)
        assert cm.decode(cm.encode(strict)) == strict
        assert type(strict) is type(whole)


@pytest.mark.promise("mended.6", "mended.11")
@pytest.mark.parametrize("whole", FACTS, ids=ev.type_of)
@hypothesis.given(data=st.data())
def test_a_fact_is_read_back_as_it_counts_or_refused(
    whole: LoggedEvent, data: st.DataObject
) -> None:
    assert ev.encode(ev.as_logged(whole)[0]) == ev.encode(whole)
    fact = spoiled(data, whole)
    with suppress(InvalidFactError):
        logged, body = ev.as_logged(fact)
        assert ev.encode(ev.decode_logged(body)) == ev.encode(logged)


@pytest.mark.promise("mended.6")
@hypothesis.given(text=TEXTS)
def test_a_fact_holds_any_text(text: str) -> None:
    fact = ev.TurnUndone(session_id="s", seq=1, at=0.0, turn_id="t", by=text)
    logged, body = ev.as_logged(fact)
    assert ev.decode_logged(body) == logged
    if not any("\ud800" <= letter <= "\udfff" for letter in text):
        assert logged.by == text


@pytest.mark.promise("mended.11")
@pytest.mark.parametrize("value", [None, 5, b"x", 1.5, ["x"], {"a": 1}, object()])
def test_a_text_is_a_text(value: Any) -> None:
    with pytest.raises(InvalidCommandError, match=r"message\.send"):
        checked(cm.SendMessage(command_id="c", session_id="s", by="p", text=value))
