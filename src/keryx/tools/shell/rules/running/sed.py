"""`sed`: its language is small enough to be read, and may write files and start commands."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from keryx.tools.shell.rules.actions import Action, Argument, Arguments, names, split

LENGTH = 2000
"""Characters of a script that are looked at; a longer one is not trusted."""

_BLANKS = re.compile(r"[\s;]*")
_ADDRESS = re.compile(r"(?:\d+(?:~\d+)?|\$|[+~]\d+)")
_FLAGS = re.compile(r"[IM]*")
_SIMPLE = "=dDgGhHnNpPxzF"
_NUMBERED = re.compile(r"[qQlL]\s*\d*")
_LABEL = re.compile(r"[:btTv][^;}\n]*")
_LINE = re.compile(r"(?:\\.|[^\n])*", re.DOTALL)
_REPLACING = re.compile(r"[gpiIMm0-9]*")


class _UnreadableError(Exception):
    """The script is none that is understood."""


@dataclass(slots=True)
class SedScript:
    """What a script does besides editing the text that passes."""

    acts: bool = False
    """Whether it writes files or starts commands."""
    empties: bool = False
    """Whether it deletes every line."""
    reads: tuple[str, ...] = ()


def read_script(text: str) -> SedScript:
    """What a script does; what cannot be read counts as acting."""
    # Versions differ in whether a delimiter inside of brackets ends an expression.
    readings = [_Reader(text, brackets=brackets).read() for brackets in (True, False)]
    understood = [one for one in readings if one is not None]
    return SedScript(
        acts=not understood or any(one.acts for one in understood),
        empties=any(one.empties for one in understood),
        reads=tuple(dict.fromkeys(path for one in understood for path in one.reads)),
    )


class _Reader:
    def __init__(self, text: str, *, brackets: bool) -> None:
        self._text = text
        self._at = 0
        self._brackets = brackets
        self._script = SedScript()

    def read(self) -> SedScript | None:
        if len(self._text) > LENGTH:
            return None
        try:
            while self._skip(_BLANKS) is not None and self._at < len(self._text):
                self._command()
        except _UnreadableError:
            return None
        return self._script

    def _skip(self, pattern: re.Pattern[str]) -> str | None:
        match = pattern.match(self._text, self._at)
        if match is None:
            return None
        self._at = match.end()
        return match.group()

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _blanks(self) -> None:
        while self._peek() in (" ", "\t"):
            self._at += 1

    def _command(self) -> None:
        first = self._address()
        self._blanks()
        second = None
        if first is not None and self._peek() == ",":
            self._at += 1
            self._blanks()
            second = self._address()
        self._blanks()
        while self._peek() in ("!", " "):
            self._at += 1
        name = self._peek()
        everything = first is None or (first == "1" and second == "$")
        self._script.empties |= name == "d" and everything
        self._named(name)

    def _address(self) -> str | None:
        if (plain := self._skip(_ADDRESS)) is not None:
            return plain
        start = self._at
        if self._peek() == "/":
            self._at += 1
            self._until("/")
        elif self._peek() == "\\":
            delimiter = self._text[self._at + 1 : self._at + 2]
            self._at += 2
            self._until(delimiter)
        else:
            return None
        self._skip(_FLAGS)
        return self._text[start : self._at]

    def _named(self, name: str) -> None:
        if name and name in _SIMPLE + "{}":
            self._at += 1
        elif name and name in "aic":
            self._at += 1
            self._skip(_LINE)
        elif name and name in "rR":
            self._at += 1
            self._script.reads += ((self._skip(_LINE) or "").strip(),)
        elif name and name in "wWe":
            self._at += 1
            self._script.acts = True
            self._skip(_LINE)
        elif name == "#":
            self._skip(_LINE)
        elif name and name in "sy":
            self._substitution(name)
        elif self._skip(_NUMBERED) is None and self._skip(_LABEL) is None:
            raise _UnreadableError

    def _substitution(self, name: str) -> None:
        delimiter = self._text[self._at + 1 : self._at + 2]
        if delimiter in ("", "\n", "\\"):
            raise _UnreadableError
        self._at += 2
        self._until(delimiter)
        brackets, self._brackets = self._brackets, False
        self._until(delimiter)
        self._brackets = brackets
        if name == "y":
            return
        self._skip(_REPLACING)
        if self._peek() in ("e", "w") and self._peek():
            self._script.acts = True
            self._skip(_LINE)

    def _until(self, delimiter: str) -> None:
        """Go past the next delimiter that stands for itself."""
        while (character := self._peek()) != delimiter:
            if not character:
                raise _UnreadableError
            if character == "[" and self._brackets:
                self._bracket()
            else:
                self._at += 2 if character == "\\" else 1
        self._at += 1

    def _bracket(self) -> None:
        match = re.compile(r"\[\^?\]?(?:\[:\w+:\]|[^\]\n])*\]").match(self._text, self._at)
        self._at = match.end() if match is not None else self._at + 1


def sed(arguments: Arguments) -> Action:
    """`sed`: reads, or changes files in place; a script may write files and start commands."""
    takes = names("-e -f -l --expression --file --line-length")
    # The suffix of `-i` is part of the word; what follows in a cluster is that suffix.
    words = tuple(
        Argument("-i") if one.text.startswith("-i") and one.known else one for one in arguments
    )
    parts = split(words, takes)
    scripts = parts.values(("-e", "--expression"))
    files = parts.values(("-f", "--file"))
    operands = parts.operands
    in_place = parts.has("-i", "--in-place")
    if in_place and len(operands) > 1 and not operands[0].text and not scripts:
        operands = operands[1:]  # other systems want the suffix as a word of its own
    if not scripts and not files:
        scripts, operands = operands[:1], operands[1:]
    # Pieces are one script: a bracket may begin in one and end in the next.
    script = read_script("\n".join(one.text for one in scripts))
    reads = tuple(Argument(path) for path in script.reads)
    deed = Action(
        reads=(*files, *reads, *(() if in_place else operands)),
        writes=operands if in_place else (),
        empties=script.empties and in_place,
    )
    if files or (script.acts and not parts.has("--sandbox")):
        why = "runs a sed script that may write files or start commands"
        return replace(deed, level="high", why=why, changes=True, opaque=True)
    if any(not one.known for one in scripts):
        return replace(deed, level="low", why="runs a sed script that only the shell knows")
    return deed
