"""From what a model sent to a validated struct, or to an error that the model can act on.

Owns strictness and limits. What to say about arguments that do not fit is `faults`' affair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from keryx.errors import InvalidArgumentsError
from keryx.tools.function import faults, foreign

ARGUMENTS_LIMIT = 16 * 1024 * 1024
"""Bytes of JSON text for one call: more than a model writes or a file tool should take at
once, and little enough to decode on the loop without a noticeable halt."""

_LONGEST_CHARACTER = 4  # bytes of one character in UTF-8
_EMPTY = b"{}"  # what an empty text stands for: models send one if there is nothing to say


class ArgumentsParser:
    """Parses the arguments of one tool."""

    __slots__ = ("_decode", "_schema", "_struct", "_tool")

    def __init__(self, tool: str, struct: type[msgspec.Struct], schema: Mapping[str, Any]) -> None:
        self._tool = tool
        self._struct = struct
        self._schema = schema
        decoder = msgspec.json.Decoder(struct, dec_hook=foreign.decode)
        self._decode: Callable[[bytes | str], msgspec.Struct] = decoder.decode

    def parse(self, arguments: bytes | str | Mapping[str, Any]) -> msgspec.Struct:
        """Validate; raises `InvalidArgumentsError`."""
        if not isinstance(arguments, bytes | str):
            return self._convert(arguments)
        if len(arguments) * _LONGEST_CHARACTER > ARGUMENTS_LIMIT:
            self._check_size(arguments)
        try:
            return self._decode(arguments)
        except (msgspec.MsgspecError, UnicodeError) as error:
            if not arguments.strip():
                return self.parse(_EMPTY)
            raise self._error(self._explained(arguments, error)) from error
        except RecursionError as error:
            raise self._error("nested too deep; send a flatter value") from error

    def _convert(self, arguments: Mapping[str, Any]) -> msgspec.Struct:
        try:
            return msgspec.convert(arguments, self._struct, dec_hook=foreign.decode)
        except msgspec.ValidationError as error:
            raise self._error(faults.refused(error, arguments, self._schema)) from error
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

    def _explained(self, arguments: bytes | str, error: Exception) -> str:
        try:
            text = arguments if isinstance(arguments, str) else arguments.decode()
            text.encode()
        except UnicodeDecodeError as found:
            return f"not valid UTF-8 at byte {found.start}; send JSON as UTF-8"
        except UnicodeEncodeError as found:
            return f"half of a surrogate pair at character {found.start}; send whole characters"
        if not isinstance(error, msgspec.ValidationError):
            return faults.malformed(text, error)
        try:
            value = msgspec.json.decode(text)
        except msgspec.ValidationError:
            value = faults.UNSEEN
        except msgspec.DecodeError as found:
            # The decoder stopped at a wrong value before it came to what is not JSON at all.
            return faults.malformed(text, found)
        except RecursionError:
            value = faults.UNSEEN
        return faults.refused(error, value, self._schema)

    def _error(self, text: str) -> InvalidArgumentsError:
        return InvalidArgumentsError(
            faults.clipped(f"arguments of `{self._tool}`: {text}", faults.MESSAGE_LIMIT)
        )
