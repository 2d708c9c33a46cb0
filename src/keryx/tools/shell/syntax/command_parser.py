"""Reads simple commands: assignments, words, redirections, here-documents, and what is skipped."""

from __future__ import annotations

import re
from collections.abc import Iterator

from keryx.tools.shell.syntax.nodes import (
    Assignment,
    Check,
    Document,
    ParseError,
    Redirection,
    Simple,
    Text,
    Word,
)
from keryx.tools.shell.syntax.source import Source
from keryx.tools.shell.syntax.words import META, WordReader

DECLARING = frozenset({"declare", "export", "local", "readonly", "typeset"})
"""Builtins whose arguments may be assignments."""

_BLANKS = re.compile(r"(?:[ \t]|\\\n)+")
_COMMENT = re.compile(r"#[^\n]*")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[[^]\s$`'\"\\;&|<>()]*\])?\+?=")
_SUBSCRIPT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\[")
_REDIRECTION = re.compile(r"(\d+|\{[A-Za-z_]\w*\})?(&>>|&>|<<<|<<-|<<|<>|<&|>>|>\||>&|[<>](?!\())")
_TEST_OPERATOR = re.compile(r"&&|\|\||[()<>;&|]|\n")
_KEYWORDS = frozenset(
    {"if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac"}
    | {"in", "function", "select", "time", "coproc", "[[", "!", "}"}
)
_HERE = ("<<", "<<-")
_CLOSES_AND_GOES_ON = re.compile(r"-[^ \t\n;&|<>()]")
_DUPLICATING = ("<&", ">&")


def _leading_text(word: Word) -> Iterator[str]:
    """What of a word stands there unquoted, up to the first part that does not."""
    for part in word.parts:
        if not isinstance(part, Text) or part.quoted:
            return
        yield part.value


class SimpleReader:
    """Reads what lies between two operators."""

    def __init__(self, source: Source, words: WordReader) -> None:
        self._source = source
        self._words = words
        self.pending: list[tuple[str, Word, Document]] = []
        """Here-documents whose bodies begin after this line."""

    def skip_blanks(self) -> None:
        """Spaces, broken lines and a comment."""
        self._source.match(_BLANKS)
        self._source.match(_COMMENT)

    def skip_lines(self) -> None:
        """Blanks, comments and newlines."""
        self.skip_blanks()
        while self._source.startswith("\n"):
            self._newline()
            self.skip_blanks()

    def check_finished(self) -> None:
        if self.pending:
            raise ParseError("a here-document has no body")

    def command(self) -> Simple:
        """Words and redirections up to the next operator."""
        assignments: list[Assignment] = []
        words: list[Word] = []
        redirections: list[Redirection] = []
        while True:
            self.skip_blanks()
            if self._redirection(redirections):
                continue
            if not self._at_word():
                break
            declares = bool(words) and words[0].bare in DECLARING
            if (not words or declares) and (found := self._assignment()) is not None:
                assignments.append(found)
            else:
                words.append(self._unbroken_word())
        if not (assignments or words or redirections):
            raise ParseError(f"a command is missing before `{self._source.peek() or 'the end'}`")
        return Simple(tuple(assignments), tuple(words), tuple(redirections))

    def _unbroken_word(self) -> Word:
        """A word; refuses one that only becomes what it is when its broken lines are joined."""
        source = self._source
        start = source.at
        word = self._words.word()
        if "\\\n" in source.text[start : source.at]:
            text = "".join(_leading_text(word))
            number = text.isdigit() and source.startswith("<", ">")
            if number or _ASSIGNMENT.match(text) or text in _KEYWORDS or text.startswith("{"):
                raise ParseError("a name, number or keyword that is broken over lines")
        return word

    def redirections(self) -> tuple[Redirection, ...]:
        """Those that follow a compound command."""
        found: list[Redirection] = []
        self.skip_blanks()
        while self._redirection(found):
            self.skip_blanks()
        return tuple(found)

    def plain_words(self) -> tuple[Word, ...]:
        """Words up to the next operator."""
        words: list[Word] = []
        self.skip_blanks()
        while self._at_word():
            words.append(self._words.word())
            self.skip_blanks()
        return tuple(words)

    def required_word(self) -> Word:
        if not self._at_word():
            raise ParseError("a word is missing")
        return self._words.word()

    def test(self) -> Check:
        """What stands between `[[` and `]]`, where operators mean other things."""
        words: list[Word] = []
        pieces: list[list[Word]] = [[]]
        outputs: list[Redirection] = []
        operator = ""
        while True:
            self._source.match(_BLANKS)
            if self._at_word():
                word = self._words.word()
                if word.bare == "]]":
                    break
                words.append(word)
                if operator == ">" and word.literal is not None:
                    outputs.append(Redirection(">", word))
                elif word.bare != "!":
                    pieces[-1].append(word)
                operator = ""
            elif self.pending or not (operator := self._source.match(_TEST_OPERATOR)):
                raise ParseError("`[[` is not closed")
            elif operator not in "()<>":
                pieces.append([])
        commands = [Simple((), tuple(piece)) for piece in pieces[1:] if piece]
        if outputs:
            commands.append(Simple((), (), tuple(outputs)))
        return Check(tuple(words), tuple(commands))

    def _at_word(self) -> bool:
        character = self._source.peek()
        return bool(character) and (
            character not in " \t\n;&|<>()" or self._source.startswith("<(", ">(")
        )

    def _assignment(self) -> Assignment | None:
        found = _ASSIGNMENT.match(self._source.text, self._source.at)
        if found is None:
            if _SUBSCRIPT.match(self._source.text, self._source.at):
                # Spaces, comments and quotes mean other things inside of it than we would read.
                raise ParseError("a subscript that is not plain is not understood")
            return None
        self._source.at = found.end()
        if not self._source.take("("):
            return Assignment(found.group(1), (self._words.word(),))
        values: list[Word] = []
        self.skip_lines()
        while not self._source.take(")"):
            values.append(self.required_word())
            self.skip_lines()
        if self._source.peek() and self._source.peek() not in META:
            # Bash takes all of it for one word then, and what follows for the command.
            raise ParseError("a list of values that goes on after its `)` is not understood")
        return Assignment(found.group(1), tuple(values))

    def _redirection(self, found: list[Redirection]) -> bool:
        source = self._source
        match = _REDIRECTION.match(source.text, source.at)
        if match is None:
            return False
        source.at = match.end()
        operator = match.group(2)
        if operator in _DUPLICATING and _CLOSES_AND_GOES_ON.match(source.text, source.at):
            # For bash the next word begins after the dash, for others this one goes on.
            raise ParseError(f"`{operator}-` that goes on is not understood")
        self.skip_blanks()
        if not self._at_word():
            raise ParseError(f"`{operator}` has no target")
        target = self._words.word()
        if operator in _HERE:
            document = Document()
            self.pending.append((operator, target, document))
            found.append(Redirection(operator, Word(()), match.group(1) or "", document))
        else:
            found.append(Redirection(operator, target, match.group(1) or ""))
        return True

    def _newline(self) -> None:
        """Go past a newline and the bodies of the here-documents that the line asked for."""
        self._source.at += 1
        for operator, end, document in self.pending:
            document.word = self._body(operator, end)
        self.pending.clear()

    def _body(self, operator: str, end: Word) -> Word:
        source = self._source
        delimiter = end.literal
        if delimiter is None or "\n" in delimiter:
            raise ParseError("the end of a here-document is not a plain word")
        quoted = end.bare is None
        lines: list[str] = []
        while True:
            if source.at >= len(source.text):
                raise ParseError(f"a here-document has no end `{delimiter}`")
            line = self._line(joined=not quoted)
            if operator == "<<-":
                line = "\n".join(piece.lstrip("\t") for piece in line.split("\n"))
            # In a broken line the shell looks for the end once it has joined the pieces.
            if line.replace("\\\n", "") == delimiter:
                break
            lines.append(line + "\n")
        text = "".join(lines)
        if quoted:
            return Word((Text(text, quoted=True),))
        return self._words.document(text)

    def _line(self, *, joined: bool) -> str:
        """The next line; with those that follow it, if backslashes join them."""
        source = self._source
        start = source.at
        while True:
            end = source.text.find("\n", source.at)
            end = len(source.text) if end < 0 else end
            line = source.text[source.at : end]
            source.at = end + 1
            broken = joined and (len(line) - len(line.rstrip("\\"))) % 2 == 1
            if not broken or source.at >= len(source.text):
                return source.text[start:end]
