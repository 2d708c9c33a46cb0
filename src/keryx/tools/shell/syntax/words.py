"""Reads words: quotes, and every kind of expansion.

The grammar, which is passed in, reads the script of a substitution. Where shells differ, or where a
mistake could hide a command, it refuses with `ParseError`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from keryx.tools.shell.syntax.escapes import decode
from keryx.tools.shell.syntax.nodes import (
    Expansion,
    ParseError,
    Part,
    Script,
    Substitution,
    Text,
    Variable,
    Word,
)
from keryx.tools.shell.syntax.source import Source

MAX_ARITHMETIC = 1000
"""The most characters of arithmetic; longer text is read as a command, so that the search for its
end is cheap."""

METACHARACTERS = " \t\n;&|<>()"

_PLAIN = re.compile(r"[^ \t\n;&|<>()\\'\"`$]+")
_QUOTED_PLAIN = re.compile(r"[^\\\"`$]+")
_BODY_PLAIN = re.compile(r"[^\\`$]+")
_BRACE_PLAIN = re.compile(r"[^\\'\"`$}<>]+")
_ARITHMETIC_PLAIN = re.compile(r"[^\\'\"`$()]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]")
_DOLLAR = Text("$", quoted=True)
_PARAMETER = re.compile(r"([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-])\}")


ScriptReader: TypeAlias = Callable[[Source, str], Script]


class WordReader:
    """Reads words. `script` reads a script from a source, up to a bracket or to the end."""

    def __init__(self, source: Source, script: ScriptReader, *, in_document: bool = False) -> None:
        self._source = source
        self._script = script
        self._in_document = in_document

    def word(self) -> Word:
        """Read the word that begins here; it is empty only if it is quoted."""
        source = self._source
        parts: list[Part] = []
        while (character := source.peek()) and (
            character not in METACHARACTERS or source.startswith("<(", ">(")
        ):
            if plain := source.match(_PLAIN):
                parts.append(Text(plain, quoted=False))
            elif source.startswith("\\\n"):
                source.at += 2
            else:
                parts.extend(self._special(quoted=False))
        return Word(tuple(parts))

    def document(self, text: str) -> Word:
        """Read the body of a here-document whose end is not quoted."""
        source = Source(text, self._source.depth)
        reader = WordReader(source, self._script, in_document=True)
        return Word(reader._until("", _BODY_PLAIN, "\\`$"))

    def arithmetic_end(self, start: int) -> int:
        """Return the position of the `))` of an arithmetic expression; -1 if it is not one.

        It looks at quotes and brackets only, so the time is linear.
        """
        text, at, depth = self._source.text, start, 0
        while at < min(len(text), start + MAX_ARITHMETIC):
            character = text[at]
            if character == "\\":
                at += 1
            elif character in "'\"":
                at = text.find(character, at + 1)
                if at < 0:
                    return -1
            elif character == "(":
                depth += 1
            elif character == ")":
                if depth == 0:
                    return at if text.startswith("))", at) else -1
                depth -= 1
            at += 1
        return -1

    def arithmetic(self, end: int) -> Word:
        """Read an arithmetic expression up to `end`, and its closing brackets."""
        source = self._source
        parts: list[Part] = []
        while source.at < end:
            if plain := source.match(_ARITHMETIC_PLAIN):
                parts.append(Text(plain, quoted=False))
            elif source.startswith("(", ")"):
                parts.append(Text(source.next(), quoted=False))
            else:
                parts.extend(self._special(quoted=False))
        if source.at != end or not source.take("))"):
            raise ParseError("an arithmetic expression is not closed where it seems to be")
        return Word(tuple(parts))

    def _special(self, *, quoted: bool) -> tuple[Part, ...]:
        """Read what begins with a special character."""
        source = self._source
        match source.peek():
            case "\\":
                source.at += 1
                if not source.peek():
                    # It is literal, or after continued lines nothing at all.
                    raise ParseError("a backslash at the very end is not understood")
                return (Text(source.next(), quoted=True),)
            case "'":
                return (Text(self._single(), quoted=True),)
            case '"':
                return self._double()
            case "`":
                return (self._backquoted(quoted=quoted),)
            case "$":
                return self._dollar(quoted=quoted)
            case _:  # `<(` or `>(`
                return (self._substitution(2, quoted=quoted),)

    def _single(self) -> str:
        source = self._source
        end = source.text.find("'", source.at + 1)
        if end < 0:
            raise ParseError("a single quote is not closed")
        value = source.text[source.at + 1 : end]
        source.at = end + 1
        return value

    def _double(self) -> tuple[Part, ...]:
        self._source.at += 1
        parts = self._until('"', _QUOTED_PLAIN, '\\`$"')
        # Empty quotes are a word too.
        return parts or (Text("", quoted=True),)

    def _until(self, stop: str, plain: re.Pattern[str], escapes: str) -> tuple[Part, ...]:
        """Read quoted text up to `stop`, or to the end if `stop` is empty."""
        source = self._source
        parts: list[Part] = []
        while True:
            if text := source.match(plain):
                parts.append(Text(text, quoted=True))
            elif (stop and source.take(stop)) or (not stop and not source.peek()):
                return tuple(parts)
            elif source.take("\\\n"):
                continue
            elif source.take("\\"):
                following = source.next() if stop or source.peek() else ""
                value = following if following and following in escapes else "\\" + following
                parts.append(Text(value, quoted=True))
            elif source.peek():
                parts.extend(self._special(quoted=True))
            else:
                raise ParseError("a double quote is not closed")

    def _backquoted(self, *, quoted: bool) -> Part:
        source = self._source
        start = source.at
        source.at += 1
        inner: list[str] = []
        escapes = '\\`$"' if quoted else "\\`$"
        while (character := source.next()) != "`":
            if character == "\\":
                following = source.next()
                if following == '"' and self._in_document:
                    # Shells differ in whether the backslash stays.
                    raise ParseError("an escaped quote in backquotes of a here-document")
                inner.append(following if following in escapes else "\\" + following)
            else:
                inner.append(character)
        source.enter()
        script = self._script(Source("".join(inner), source.depth), "")
        source.leave()
        return Substitution(script, source.text[start : source.at], quoted)

    def _dollar(self, *, quoted: bool) -> tuple[Part, ...]:
        source = self._source
        start = source.at
        if source.startswith("$(("):
            end = self.arithmetic_end(start + 3)
            if end >= 0:
                return (self._arithmetic(end, quoted=quoted),)
        if source.startswith("$("):
            return (self._substitution(2, quoted=quoted),)
        if source.startswith("${"):
            return (self._parameter(quoted=quoted),)
        if source.startswith("$[", "$\\\n"):
            raise ParseError("`$[`, and a line that is broken after `$`, are not understood")
        source.at += 1
        if not quoted and source.startswith("'", '"'):
            return (Text(self._escaped(), quoted=True),) if source.peek() == "'" else self._double()
        name = source.match(_NAME)
        part = Variable(name, source.text[start : source.at], quoted) if name else _DOLLAR
        return (part,)

    def _escaped(self) -> str:
        source = self._source
        start = source.at + 1
        source.at = start
        while (character := source.next()) != "'":
            if character == "\\" and source.next() == "'":
                # Shells without `$'` would end the quotation here.
                raise ParseError("a quote inside of `$'` is not understood")
        return decode(source.text[start : source.at - 1])

    def _arithmetic(self, end: int, *, quoted: bool) -> Part:
        source = self._source
        start = source.at
        source.at += 3
        source.enter()
        inner = self.arithmetic(end)
        source.leave()
        return Expansion(source.text[start : source.at], inner.parts, quoted)

    def _substitution(self, opening: int, *, quoted: bool) -> Part:
        source = self._source
        start = source.at
        source.at += opening
        source.enter()
        script = self._script(source, ")")
        source.leave()
        return Substitution(script, source.text[start : source.at], quoted)

    def _parameter(self, *, quoted: bool) -> Part:
        source = self._source
        start = source.at
        source.at += 2
        if match := _PARAMETER.match(source.text, source.at):
            source.at = match.end()
            return Variable(match.group(1), source.text[start : source.at], quoted)
        if source.startswith(" ", "\t", "\n", "|", "("):
            raise ParseError("a command in `${` is not understood; use `$(`")
        source.enter()
        parts: list[Part] = []
        while not source.take("}"):
            if plain := source.match(_BRACE_PLAIN):
                parts.append(Text(plain, quoted))
            elif quoted and source.peek() == "'":
                # Whether it quotes depends on the operator; a wrong guess could hide a command.
                raise ParseError('a single quote inside of `"${` is not understood')
            elif source.startswith("<", ">") and (quoted or not source.startswith("<(", ">(")):
                parts.append(Text(source.next(), quoted))
            elif source.peek():
                parts.extend(self._special(quoted=quoted))
            else:
                raise ParseError("`${` is not closed")
        source.leave()
        return Expansion(source.text[start : source.at], tuple(parts), quoted)
