"""The result of a tool: a dict that is also a text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from keryx_tools._errors import ToolCancelledError, ToolError, ToolUnknownError, error_of
from keryx_tools._transports.deadline import Deadline

if TYPE_CHECKING:
    _Values = dict[str, Any]
else:
    _Values = dict  # Python 3.8 has no dict[...]


_JSON_STYLE: dict[str, Any] = {"ensure_ascii": False, "separators": (",", ":")}


class Result(_Values):
    """A dict with the keys of the tool's value. If that is not an object, `output` and `text` hold
    its text, and `value` holds the value unless it is only a text.

    `str(result)` is its `text` if it has one, and else the value as JSON. `result.value` is the
    value itself. `result.overlaps` names calls that may still run and touch the same things.
    """

    value: Any
    overlaps: tuple[str, ...]
    _text: str | None

    @classmethod
    def of(cls, answer: dict[str, Any]) -> Result:
        """Return the result of a host's answer."""
        result = cls()
        result.value = answer.get("value")
        result.overlaps = tuple(answer.get("overlaps") or ())
        result._text = answer.get("text")
        if isinstance(result.value, dict):
            result.update(cast("dict[str, Any]", result.value))
        else:
            result.update(output=result.text, text=result.text)
            if result.value is not None:
                result["value"] = result.value
        return result

    @property
    def text(self) -> str:
        """The text of the result; if the host sent only a value, it is the value as JSON."""
        if self._text is None:
            own = self.get("text")
            if isinstance(own, str):
                return own
            is_empty = self.value is None
            self._text = "" if is_empty else json.dumps(self.value, **_JSON_STYLE)
        return self._text

    def __str__(self) -> str:
        return self.text

    def __missing__(self, key: object) -> Any:
        if key == "output" and "text" in self:
            return self["text"]  # results that are only a text have it under both keys
        raise KeyError(f"{key!r}; this result has: {', '.join(map(str, self))}")


def result_or_raise(answer: dict[str, Any], deadline: Deadline) -> Result:
    """Return the result of a packet, or raise its error."""
    tool = deadline.tool
    if "error" in answer:
        error = error_of(answer["error"], tool)
        if isinstance(error, (ToolCancelledError, ToolUnknownError)) and deadline.is_over:
            raise deadline.timeout_error()  # the host has the same deadline, and may cancel first
        raise error
    if not isinstance(answer.get("result"), dict):
        raise ToolError(f"{tool}: the host answered with neither a result nor an error", tool)
    return Result.of(answer["result"])
