"""What the parser makes of command lines, and that nothing makes it fall over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keryx.tools.shell.syntax import MAX_LENGTH, ParseError, Script, parse
from keryx.tools.shell.syntax.braces import expand
from keryx.tools.shell.syntax.nodes import Check, Function, Loop, Simple, Substitution, Variable


def words(script: Script) -> list[list[str]]:
    return [[word.text for word in command.words] for command in script.commands()]


def only(text: str) -> Simple:
    (command,) = parse(text).commands()
    return command


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ls -l", [["ls", "-l"]]),
        ("a; b & c\nd", [["a"], ["b"], ["c"], ["d"]]),
        ("a && b || c", [["a"], ["b"], ["c"]]),
        ("a | b |& c", [["a"], ["b"], ["c"]]),
        ("! a", [["a"]]),
        ("(a; b) && { c; }", [["a"], ["b"], ["c"]]),
        ("if a; then b; elif c; then d; else e; fi", [["a"], ["b"], ["c"], ["d"], ["e"]]),
        ("while a; do b; done; until c; do d; done", [["a"], ["b"], ["c"], ["d"]]),
        ("for x in 1 2; do a; done", [["a"]]),
        ("for x\ndo a\ndone", [["a"]]),
        ("for ((i=0; i<3; i++)); do a; done", [["a"]]),
        ("case x in (a|b) c;; *) d;; esac", [["c"], ["d"]]),
        ("f() { a; }; function g { b; }", [["a"], ["b"]]),
        ("time { a; }", [["a"]]),
        ("a $(b `c`)", [["a", "$(b `c`)"], ["b", "`c`"], ["c"]]),
        ("a `b \\`c\\``", [["a", "`b \\`c\\``"], ["b", "`c`"], ["c"]]),
        ('a "x $(b "$(c)") y"', [["a", 'x $(b "$(c)") y'], ["b", "$(c)"], ["c"]]),
        ("a ${x:-$(b)} $((1 + $(c)))", [["a", "${x:-$(b)}", "$((1 + $(c)))"], ["b"], ["c"]]),
        ("a <(b) >(c)", [["a", "<(b)", ">(c)"], ["b"], ["c"]]),
        ("a $((b); (c))", [["a", "$((b); (c))"], ["b"], ["c"]]),
        ("x=1 y=$(a) b", [["b"], ["a"]]),
        ("x=(1 $(a)) b", [["b"], ["a"]]),
        ("a > $(b) <<< $(c)", [["a"], ["b"], ["c"]]),
        ("a # b; c\nd", [["a"], ["d"]]),
        ("a#b '#c'", [["a#b", "#c"]]),
        ("a \\\n b", [["a", "b"]]),
        ("a\\\nb", [["ab"]]),
        ("[[ a && $(b) =~ (x|y) ]] && c", [["c"], ["b"]]),
        ("((x++)); ((y = $(a)))", [["a"]]),
        ("a <<E; b\n$(c)\nE\nd", [["a"], ["c"], ["b"], ["d"]]),
        ("a <<'E'\n$(c)\nE\nd", [["a"], ["d"]]),
        ("a <<-E\n\tx\n\tE\nb", [["a"], ["b"]]),
        ("a <<E <<F\n1\nE\n$(b)\nF\nc", [["a"], ["b"], ["c"]]),
        ("a $(b <<E\n)\nE\n) c", [["a", "$(b <<E\n)\nE\n)", "c"], ["b"]]),
        ("a <<E\nx\\\nE\nE\nb", [["a"], ["b"]]),
        ("a <<E\nE\\\n\nb", [["a"], ["b"]]),
        ("", []),
        ("\n\n", []),
    ],
)
def test_every_command_of_a_line_is_seen(text: str, expected: list[list[str]]) -> None:
    assert sorted(words(parse(text))) == sorted(expected)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'a b'", "a b"),
        ('"a b"', "a b"),
        ("a\\ b", "a b"),
        ("a' 'b", "a b"),
        ("$'a\\x20b'", "a b"),
        ("$'\\101\\u00e9\\n'", "Aé\n"),
        ('"a\\"b\\$c\\d"', 'a"b$c\\d'),
        ("''", ""),
        ('""', ""),
        ("a\\\nb", "ab"),
        ("a$", "a$"),
        ("{a,b}", "{a,b}"),
    ],
)
def test_quoting_is_removed(text: str, value: str) -> None:
    command = only(f"echo {text}")
    assert [word.literal for word in command.words] == ["echo", value]


@pytest.mark.parametrize("text", ["$x", "${x}", "a$x", '"$x"', "$(a)", "`a`", "${x%y}", "$((1))"])
def test_what_only_the_shell_knows_has_no_value(text: str) -> None:
    assert next(parse(f"echo {text}").commands()).words[1].literal is None


def test_assignments_and_redirections_are_told_apart_from_words() -> None:
    command = only("A=1 B+=2 cmd C=3 2>err >>out <in &>all 3<>both >&2")
    assert [one.name for one in command.assignments] == ["A", "B"]
    assert [word.literal for word in command.words] == ["cmd", "C=3"]
    assert [(one.descriptor, one.operator, one.target.literal) for one in command.redirections] == [
        ("2", ">", "err"),
        ("", ">>", "out"),
        ("", "<", "in"),
        ("", "&>", "all"),
        ("3", "<>", "both"),
        ("", ">&", "2"),
    ]


def test_declarations_take_assignments_as_arguments() -> None:
    command = only("export A=1 B")
    assert [one.name for one in command.assignments] == ["A"]
    assert [word.literal for word in command.words] == ["export", "B"]


def test_the_body_of_a_here_document_is_its_word() -> None:
    command = only("cat <<'E'\none $x\ntwo\nE\n")
    assert [one.word.literal for one in command.redirections] == ["one $x\ntwo\n"]
    command = only("cat <<E\none $x\nE\n")
    assert [one.word.literal for one in command.redirections] == [None]
    assert any(isinstance(part, Variable) for part in command.redirections[0].word.parts)


def test_the_shape_of_a_script_is_kept() -> None:
    script = parse("a && ! b | c & f() { d; }; for x in 1; do e; done; [[ y ]]")
    first, second, third, fourth = script.chains
    assert first.background
    assert not second.background
    assert first.following[0][0] == "&&"
    assert first.following[0][1].negated
    assert len(first.following[0][1].stages) == 2
    assert isinstance(second.first.stages[0], Function)
    assert isinstance(third.first.stages[0], Loop)
    assert isinstance(fourth.first.stages[0], Check)


@pytest.mark.parametrize(
    "text",
    [
        "'a", '"a', "`a", "$(a", "${a", "(a", "{ a;", "a)", "a }; }", "if a; then b", "for x in 1",
        "case x in a) b", "a |", "a &&", "| a", "; a", "a >", "a <<", "a <<E", "a <<E\nb", "[[ a",
        "done", "then", "a ;;", "f()", "coproc a", "$[1]", "${ a; }", "a $\\\n(b)", "\0",
        "a <<$x\n$x\n", '"${x:-\'}"', "((rm -rf /))", "rm !(a)", "a b()", "$'\\''", "a[ # ]=1",
        "a=()echo b", "a=()# b", "a=(1)\\\nb c", "a+=()b c", "a \\\n\\\n\\", "a\\",
        "a <&-5 b", "a >&-5 b", "v\\\n=1 b", "v\\\n=$x b", "2\\\n>o b", "co\\\nproc b",
        "!\\\n v= b", 'a <<E\n`b \\"c\\"`\nE\n',
        "(" + "a" * MAX_LENGTH + ")",
    ],
)  # fmt: skip
def test_what_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{a,b}c", ["ac", "bc"]),
        ("x{a,{b,c}d}", ["xa", "xbd", "xcd"]),
        ("{a,b}{c,d}", ["ac", "ad", "bc", "bd"]),
        ("a{,.bak}", ["a", "a.bak"]),
        ("{,a,b}", ["a", "b"]),
        ("{'',a}", ["", "a"]),
        ("{a}", ["{a}"]),
        ("{1..3}", ["*[0-9]"]),
        ("x{a..e}", ["x[a-e]"]),
        ("{a,b", ["{a,b"]),
        ("'{a,b}'", ["{a,b}"]),
        ("${x}{a,b}", ["${x}a", "${x}b"]),
    ],
)
def test_braces_become_words(text: str, expected: list[str]) -> None:
    expanded = expand(only(f"echo {text}").words[1])
    assert expanded is not None
    assert [word.text for word in expanded] == expected


def test_too_many_braces_are_not_expanded() -> None:
    assert expand(only("echo " + "{a,b}" * 10).words[1]) is None
    assert expand(only("echo " + "{" * 100).words[1]) is None


PIECES = st.sampled_from(
    [
        *"abc 12;&|<>(){}[]$`'\"\\#!*?~=\n\t,-", "&&", "||", "$(", "${", "$((", "))", "((", "<<E\n",
        "\nE\n", "<<'E'\n", "<<-E\n", "<(", ">(", "&>", "2>&1", "if ", "; then ", "; fi",
        "case x in ", ";;", "esac", "for i in ", "; do ", "; done", "[[ ", " ]]", "f() ",
        "function f ", "$'", "x=(", "\\\n", "{a,b}", "time ", "! ", "${x:-", "é", "\u00a0", "\r",
    ]
)  # fmt: skip


@given(st.lists(PIECES, max_size=60).map("".join))
def test_any_mixture_of_the_grammar_is_parsed_or_refused(text: str) -> None:
    try:
        script = parse(text)
    except ParseError:
        return
    for command in script.commands():
        for word in command.words:
            assert word.text is not None
            for inner in word.scripts():
                assert isinstance(inner, Script)


@given(st.text(max_size=200))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        parse(text)
    except ParseError:
        return


@pytest.mark.parametrize(
    "piece",
    [
        "(", "((", "( ", "$(", "$((", "`", "${", '"$(', "{ ", "{a,b}", "if ", "case x in ",
        "f() { ", "a;", "a|", "a&&", "! ", "<<E ", "a <<E\nE\n", "$(($(", "(($(",
        "$(( #'\n a) ) ", "\\", "'",
        "[[ ", "x=(", "<(", "$'", "a\n", "${x:-", "time ", "#", "a b ", "é",
    ],
)  # fmt: skip
def test_repetition_neither_hangs_nor_overflows(piece: str) -> None:
    for text in (piece * 4000, piece * 30 + "a", "a " + piece * 4000):
        try:
            parse(text)
        except ParseError:
            continue


def test_a_substitution_keeps_its_source() -> None:
    (part,) = next(parse("echo $(ls  -l)").commands()).words[1].parts
    assert isinstance(part, Substitution)
    assert part.source == "$(ls  -l)"
