"""From text to a `Script`: lists, pipelines, compound commands.

Takes what bash and POSIX shells take, as far as agents and people write it; whatever else comes
is a `ParseError`, for a command that is not understood must not pass for a harmless one.
"""

from __future__ import annotations

import re

from keryx.tools.shell.syntax.command_parser import SimpleReader
from keryx.tools.shell.syntax.nodes import (
    Case,
    Chain,
    Check,
    Function,
    Group,
    If,
    Loop,
    ParseError,
    Pipeline,
    Redirected,
    Script,
    Simple,
    Stage,
    Text,
    Word,
)
from keryx.tools.shell.syntax.source import DEPTH, Source
from keryx.tools.shell.syntax.words import WordReader

LENGTH = 256 * 1024
"""Characters of a command line: enough for a file in a here-document, little enough to read
on the loop."""

_KEYWORD = re.compile(r"(?:[a-z]+|[{}!]|\[\[)(?=[ \t\n;&|<>()]|$)")
_FUNCTION = re.compile(r"([^ \t\n;&|<>()\\'\"`$=#]+)[ \t]*\([ \t]*\)[ \t\n]*")
_NAMED_FUNCTION = re.compile(
    r"function[ \t]+([^ \t\n;&|<>()\\'\"`$=#]+)[ \t]*(?:\([ \t]*\))?[ \t\n]*"
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TIMED = re.compile(r"time(?:[ \t]+-p)?[ \t]+(?=[({!]|(?:if|for|while|until|case|time)\b)")
# What arithmetic never holds: a name and then, after a space, an option, a path or a word.
# Shells without `((` would run it.
_LIKE_A_COMMAND = re.compile(
    r"[$A-Za-z_][\w./]*\s+(?:-{1,2}[A-Za-z]|[/~*][^\s=]|[.\w$\"'`])|[<>]\s*[/~.]"
)
_OPERANDS = re.compile(r"[^;&|()<>\s]+")

_CLOSING = frozenset({"then", "do", "done", "fi", "elif", "else", "esac", "}"})
_OPENING = frozenset({"if", "while", "until", "for", "select", "case", "{", "[["})
_REFUSED = frozenset({"coproc", "in"})


def parse(text: str, *, depth: int = DEPTH) -> Script:
    """The script that the text is; raises `ParseError`, and nothing else."""
    if len(text) > LENGTH:
        raise ParseError(f"the command has more than {LENGTH} characters")
    if "\0" in text:
        raise ParseError("the command holds a NUL character")
    return _read(Source(text, depth), "")


def _read(source: Source, end: str) -> Script:
    return _Grammar(source).script(end)


class _Grammar:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._words = WordReader(source, _read)
        self._simple = SimpleReader(source, self._words)

    def script(self, end: str) -> Script:
        """A script that begins here and ends with the bracket, or with the text."""
        script = self._script()
        found = self._source.peek()
        if found != end:
            raise ParseError(f"`{found}` is not expected here" if found else f"`{end}` is missing")
        self._source.at += len(end)
        self._simple.check_finished()
        return script

    def _script(self) -> Script:
        """Chains up to the end, a `)`, a `;;` or a keyword that closes something."""
        chains: list[Chain] = []
        source = self._source
        while True:
            self._simple.skip_lines()
            if not source.peek() or source.startswith(")", ";;", ";&"):
                break
            if self._keyword() in _CLOSING:
                break
            chain = self._chain()
            if source.startswith(";;", ";&"):
                chains.append(chain)
                break
            if source.take("&"):
                chain = Chain(chain.first, chain.rest, background=True)
            elif not source.take(";") and source.peek() not in ("\n", ")", ""):
                raise ParseError(f"`{source.peek()}` is not expected here")
            chains.append(chain)
        return Script(tuple(chains))

    def _chain(self) -> Chain:
        first = self._pipeline()
        rest: list[tuple[str, Pipeline]] = []
        while self._source.startswith("&&", "||"):
            operator = self._source.next() + self._source.next()
            self._simple.skip_lines()
            rest.append((operator, self._pipeline()))
        return Chain(first, tuple(rest))

    def _pipeline(self) -> Pipeline:
        source = self._source
        negated = False
        while True:
            if self._keyword() == "!":
                source.at += 1
                negated = not negated
            elif not source.match(_TIMED):
                break
            self._simple.skip_blanks()
        stages = [self._stage()]
        while source.startswith("|") and not source.startswith("||"):
            source.at += 1
            source.take("&")
            self._simple.skip_lines()
            stages.append(self._stage())
        return Pipeline(tuple(stages), negated)

    def _keyword(self) -> str:
        """The keyword that comes next, if one does; it is not taken."""
        found = _KEYWORD.match(self._source.text, self._source.at)
        return found.group() if found is not None else ""

    def _expect(self, *keywords: str) -> str:
        self._simple.skip_lines()
        found = self._keyword()
        if found not in keywords:
            raise ParseError(f"`{keywords[0]}` is missing")
        self._source.at += len(found)
        return found

    def _stage(self) -> Stage:
        source = self._source
        keyword = self._keyword()
        if keyword in _CLOSING or keyword in _REFUSED:
            raise ParseError(f"`{keyword}` is not expected here")
        if keyword == "function" or _FUNCTION.match(source.text, source.at):
            return self._function()
        if keyword not in _OPENING and not source.startswith("("):
            return self._simple.command()
        source.enter()
        stage = self._bracket() if source.startswith("(") else self._compound(keyword)
        redirections = self._simple.redirections()
        source.leave()
        return Redirected(stage, redirections) if redirections else stage

    def _function(self) -> Stage:
        source = self._source
        found = _NAMED_FUNCTION.match(source.text, source.at)
        found = found or _FUNCTION.match(source.text, source.at)
        if found is None:
            raise ParseError("a function has no name")
        source.at = found.end()
        if not source.startswith("(") and self._keyword() not in _OPENING:
            raise ParseError("a function has no body")
        return Function(found.group(1), self._stage())

    def _bracket(self) -> Stage:
        source = self._source
        if source.startswith("(("):
            start = source.at + 2
            end = self._words.sum_end(start)
            if end >= 0:
                if _LIKE_A_COMMAND.search(source.text[start:end]):
                    raise ParseError("`((` around what looks like a command is not understood")
                source.at = start
                names = _OPERANDS.findall(source.text[start:end])
                commands = tuple(Simple((), (Word((Text(one, quoted=False),)),)) for one in names)
                return Check((self._words.sum(end),), commands)
        source.at += 1
        body = self._script()
        if not source.take(")"):
            raise ParseError("`(` is not closed")
        return Group(body, subshell=True)

    def _compound(self, keyword: str) -> Stage:
        self._source.at += len(keyword)
        match keyword:
            case "{":
                body = self._script()
                self._expect("}")
                return Group(body, subshell=False)
            case "if":
                return self._if()
            case "while" | "until":
                condition = self._script()
                return Loop(condition, self._body())
            case "for" | "select":
                return self._for()
            case "case":
                return self._case()
            case _:
                return self._simple.test()

    def _if(self) -> Stage:
        branches: list[tuple[Script, Script]] = []
        otherwise: Script | None = None
        keyword = "if"
        while keyword != "fi":
            if keyword == "else":
                otherwise = self._script()
                keyword = self._expect("fi")
            else:
                condition = self._script()
                self._expect("then")
                branches.append((condition, self._script()))
                keyword = self._expect("fi", "elif", "else")
        return If(tuple(branches), otherwise)

    def _body(self) -> Script:
        self._expect("do")
        body = self._script()
        self._expect("done")
        return body

    def _for(self) -> Stage:
        source = self._source
        self._simple.skip_blanks()
        if source.startswith("(("):
            source.at += 2
            end = self._words.sum_end(source.at)
            if end < 0:
                raise ParseError("`((` is not closed")
            words: tuple[Word, ...] = (self._words.sum(end),)
            name = ""
        else:
            name = source.match(_NAME)
            if not name:
                raise ParseError("`for` has no name")
            words = self._for_words()
        self._simple.skip_blanks()
        source.take(";")
        self._simple.skip_lines()
        return Loop(None, self._for_body(), name, words)

    def _for_words(self) -> tuple[Word, ...]:
        self._simple.skip_lines()
        if self._keyword() != "in":
            return ()
        self._source.at += len("in")
        return self._simple.plain_words()

    def _for_body(self) -> Script:
        if self._keyword() != "{":
            return self._body()
        self._source.at += 1
        body = self._script()
        self._expect("}")
        return body

    def _case(self) -> Stage:
        source = self._source
        self._simple.skip_blanks()
        words = [self._simple.required_word()]
        self._expect("in")
        bodies: list[Script] = []
        while True:
            self._simple.skip_lines()
            if self._keyword() == "esac":
                source.at += len("esac")
                return Case(tuple(words), tuple(bodies))
            source.take("(")
            while True:
                self._simple.skip_blanks()
                words.append(self._simple.required_word())
                self._simple.skip_blanks()
                if not source.take("|"):
                    break
            if not source.take(")"):
                raise ParseError("a pattern of `case` has no `)`")
            bodies.append(self._script())
            for end in (";;&", ";;", ";&"):
                if source.take(end):
                    break
