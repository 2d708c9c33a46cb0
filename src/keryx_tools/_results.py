"""What a tool gave: a dict and a text in one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from keryx_tools._errors import ToolCancelledError, ToolError, ToolUnknownError, error_of
from keryx_tools._ways.deadline import Deadline

if TYPE_CHECKING:
    _Values = dict[str, Any]
else:
    _Values = dict  # Python 3.8 has no dict[...]


_AS_TOLD: dict[str, Any] = {"ensure_ascii": False, "separators": (",", ":")}


class Result(_Values):
    """The keys of the tool's value; if that is no object, `output` and `text` hold its text, and
    `value` the value if it is more than a text.

    `str(result)` is its `text` if it has one, and else all of it as JSON. `result.value` is the
    value as it came. `result.overlaps` names calls that may still run and touch the same things.
    """

    value: Any
    overlaps: tuple[str, ...]
    _text: str | None

    @classmethod
    def of(cls, answer: dict[str, Any]) -> Result:
        """What the host answered."""
        made = cls()
        made.value = answer.get("value")
        made.overlaps = tuple(answer.get("overlaps") or ())
        made._text = answer.get("text")
        if isinstance(made.value, dict):
            made.update(cast("dict[str, Any]", made.value))
        else:
            made.update(output=made.text, text=made.text)
            if made.value is not None:
                made["value"] = made.value
        return made

    @property
    def text(self) -> str:
        """The host sends none along with a value: that would be the same once more."""
        if self._text is None:
            own = self.get("text")
            if isinstance(own, str):
                return own
            plain = self.value is None
            self._text = "" if plain else json.dumps(self.value, **_AS_TOLD)
        return self._text

    def __str__(self) -> str:
        return self.text

    def __missing__(self, key: object) -> Any:
        if key == "output" and "text" in self:
            return self["text"]  # what texts are called where they are all that there is
        raise KeyError(f"{key!r}; this result has: {', '.join(map(str, self))}")


def opened(answer: dict[str, Any], deadline: Deadline) -> Result:
    """The result that a packet holds; raises the error that it holds instead."""
    tool = deadline.tool
    if "error" in answer:
        error = error_of(answer["error"], tool)
        if isinstance(error, (ToolCancelledError, ToolUnknownError)) and deadline.is_over:
            raise deadline.over()  # the host counts too, and may be the first to say so
        raise error
    if not isinstance(answer.get("result"), dict):
        raise ToolError(f"{tool}: the host answered with neither a result nor an error", tool)
    return Result.of(answer["result"])
