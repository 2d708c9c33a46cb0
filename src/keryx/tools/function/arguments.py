"""Turns arguments of a model into a validated struct, or into an error that the model can act on.

It owns strictness and limits. `faults` explains what is wrong with arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from keryx.decoding import convert, json_decoder
from keryx.errors import InvalidArgumentsError
from keryx.tools.function import faults, foreign

ARGUMENTS_LIMIT = 16 * 1024 * 1024
"""The most bytes of JSON for one call: more than a model writes, and little enough to decode on
the loop without a noticeable delay."""

_LONGEST_CHARACTER = 4  # bytes of one character in UTF-8
_EMPTY = b"{}"  # models send an empty text if there are no arguments


class ArgumentsParser:
    """Parses the arguments of one tool."""

    __slots__ = ("_decode", "_schema", "_struct", "_tool")

    def __init__(self, tool: str, struct: type[msgspec.Struct], schema: Mapping[str, Any]) -> None:
        self._tool = tool
        self._struct = struct
        self._schema = schema
        decoder = json_decoder(struct, dec_hook=foreign.decode)
        self._decode: Callable[[bytes | str], msgspec.Struct] = decoder.decode

    def parse(self, arguments: bytes | str | Mapping[str, Any]) -> msgspec.Struct:
        """Validate the arguments. Raise `InvalidArgumentsError` if they are wrong."""
        if not isinstance(arguments, bytes | str):
            return self._convert(arguments)
        if len(arguments) * _LONGEST_CHARACTER > ARGUMENTS_LIMIT:
            self._check_size(arguments)
        try:
            return self._decode(arguments)
        except (msgspec.MsgspecError, UnicodeError) as error:
            if not arguments.strip():
                return self.parse(_EMPTY)
            raise self._error(self._explain(arguments, error)) from error
        except RecursionError as error:
            raise self._error("nested too deep; send a flatter value") from error

    def _convert(self, arguments: Mapping[str, Any]) -> msgspec.Struct:
        try:
            return convert(arguments, self._struct, dec_hook=foreign.decode)
        except msgspec.ValidationError as error:
            raise self._error(faults.explain_refusal(error, arguments, self._schema)) from error
        except UnicodeError as error:
            raise self._error("a name holds a character that UTF-8 cannot carry") from error
        except RecursionError as error:
            raise self._error("nested too deep; send a flatter value") from error

    def _check_size(self, arguments: bytes | str) -> None:
        if isinstance(arguments, str):
            size = len(arguments.encode(errors="surrogatepass"))
        else:
            size = len(arguments)
        if size > ARGUMENTS_LIMIT:
            raise self._error(
                f"{size} bytes are too many, the limit is {ARGUMENTS_LIMIT}; "
                "send less at once, in several calls"
            )

    def _explain(self, arguments: bytes | str, error: Exception) -> str:
        try:
            text = arguments if isinstance(arguments, str) else arguments.decode()
            text.encode()
        except UnicodeDecodeError as decode_error:
            return f"not valid UTF-8 at byte {decode_error.start}; send JSON as UTF-8"
        except UnicodeEncodeError as decode_error:
            return (
                f"half of a surrogate pair at character {decode_error.start}; send whole characters"
            )
        if not isinstance(error, msgspec.ValidationError):
            return faults.explain_malformed(text, error)
        try:
            value = msgspec.json.decode(text)
        except msgspec.ValidationError:
            value = faults.UNREADABLE
        except msgspec.DecodeError as decode_error:
            # The decoder stopped at a wrong value before it reached the part that is not JSON.
            return faults.explain_malformed(text, decode_error)
        except RecursionError:
            value = faults.UNREADABLE
        return faults.explain_refusal(error, value, self._schema)

    def _error(self, text: str) -> InvalidArgumentsError:
        return InvalidArgumentsError(
            faults.clip(f"arguments of `{self._tool}`: {text}", faults.MESSAGE_LIMIT)
        )
