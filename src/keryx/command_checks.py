"""Checks a command where it enters, as strictly as if it had come as JSON.

What programs pass has any type, and is checked before it counts. What the store holds was checked.
"""

from __future__ import annotations

import datetime as dt
import decimal
import functools
import typing
from typing import Final

import msgspec
from msgspec import UNSET

from keryx import commands as cm
from keryx import messages as ms
from keryx.decoding import convert, json_decoder
from keryx.errors import InvalidCommandError

MAX_TEXT: Final = 1_000_000
"""Characters of a message. More is a file, to be attached."""

_FOREIGN: Final = (bytes, bytearray, memoryview, dt.datetime, dt.date, dt.time, decimal.Decimal)
"""Types that msgspec would encode as text; no command accepts them."""


def checked(command: cm.Command) -> cm.Command:
    """Return the command, checked as if it were JSON; `InvalidCommandError` names a wrong field."""
    kind = type(command)
    if kind not in _kinds():
        raise InvalidCommandError(f"{kind.__name__} is not a command; see keryx.commands")
    try:
        fields = msgspec.to_builtins(command, builtin_types=_FOREIGN)
        strict = convert(fields, kind)
        if _decoder_of(kind).decode(cm.encode(strict)) == strict:
            _check_message(strict)
            return strict
    except (msgspec.ValidationError, TypeError, ValueError, RecursionError) as error:
        raise _refusal(command, error) from error
    raise InvalidCommandError(f"{_name(kind)} has a field that JSON cannot hold; nothing was done")


def _check_message(command: cm.Command) -> None:
    """Raise `ValueError` for a message that says nothing, or too much.

    Only what is new is checked: what an earlier version has stored is read as it is.
    """
    if not isinstance(command, cm.SendMessage | cm.ChangeMessage) or command.text is UNSET:
        return
    if len(command.text) > MAX_TEXT:
        size = len(command.text)
        raise ValueError(
            f"the text has {size:,} characters and may have {MAX_TEXT:,}; attach it as a file"
        )
    if not (command.text.strip() or command.attachments):
        raise ValueError("the message is empty; write a text, or attach a file")


def _refusal(command: cm.Command, error: Exception) -> InvalidCommandError:
    if isinstance(error, UnicodeEncodeError):
        why = "a text holds half of a surrogate pair, which is not Unicode; send text that is"
    elif "`$.effort`" in str(error):
        why = f"{error}; {ms.EFFORT_ADVICE}"
    else:
        why = f"{error}; see the fields of {type(command).__name__}"
    return InvalidCommandError(f"{_name(type(command))} was refused: {why}")


def _name(kind: type[cm.Command]) -> str:
    return f"the command {kind.__struct_config__.tag!r}"


@functools.cache
def _kinds() -> frozenset[type[cm.Command]]:
    return frozenset(typing.get_args(cm.Command))


@functools.cache
def _decoder_of(kind: type[cm.Command]) -> msgspec.json.Decoder[cm.Command]:
    return json_decoder(kind)
