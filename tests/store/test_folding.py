"""What a word is: the same in texts and in searches, whatever they are written in."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keryx.store.search.query import Query
from keryx.store.search.tokenizer import fold, fold_with_places, marks_of, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello, World_2!", {"hello", "world", "2"}),
        ("Ünïcödé ﬁne ½ ²", {"unicode", "fine", "1", "2"}),
        ("ΑΒΓ άλφα ДОМ дом", {"αβγ", "αλφα", "дом"}),
        ("हिन्दी में", {"हिनदी", "में"}),
        ("東京tower", {"tower", *marks_of("東京")}),
        ("\uff28\uff41\uff4c\uff46\u3000\uff57\uff49\uff44\uff45", {"half", "wide"}),
        ("が か", {"が", "か"}),
        ("x" * 100, {"x" * 40}),
        ("\x00\ud800 a", {"a"}),
        ("", set[str]()),
    ],
)
def test_the_words_of_a_text(text: str, words: set[str]) -> None:
    assert words_of(text) == words


def test_an_unspaced_text_has_its_characters_and_one_mark_for_each_two_of_them() -> None:
    assert marks_of("東") == {"東"}
    assert len(marks_of("東京都")) == 5
    assert marks_of("東京") != marks_of("京東")
    assert marks_of("東京") <= marks_of("の東京都")


@given(st.text())
def test_an_index_of_sqlite_holds_exactly_the_words_of_a_text(text: str) -> None:
    words = words_of(text)
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(
            "CREATE VIRTUAL TABLE t USING fts5(w, content='', detail=none, tokenize='ascii')"
        )
        connection.execute("CREATE VIRTUAL TABLE v USING fts5vocab('t', 'row')")
        connection.execute("INSERT INTO t (rowid, w) VALUES (1, ?)", (" ".join(words),))
        assert {term for (term,) in connection.execute("SELECT term FROM v")} == words


@given(st.text())
def test_every_character_of_a_folded_text_comes_from_a_place_of_the_text(text: str) -> None:
    folded, places = fold_with_places(text)
    assert len(places) == len(folded) + 1
    assert list(places) == sorted(places)
    assert places[-1] == len(text)


@given(st.text(), st.text())
def test_a_text_is_found_by_itself_and_its_snippet_is_a_part_of_it(before: str, text: str) -> None:
    query = Query(text)
    if query:
        whole = before + " " + text
        if len(fold(text).split()) <= 16:
            assert query.rank(whole) is not None
        snippet = query.snippet(whole)
        assert sum(len(piece.text) for piece in snippet) <= 170


@given(st.text(alphabet="ab 東京"), st.text(alphabet="ab 東京"))
def test_what_fits_has_every_term_among_its_words(text: str, words: str) -> None:
    query = Query(words)
    if query and query.rank(text) is not None:
        text_words = words_of(text)
        assert set(query.terms) <= text_words
        for prefix in query.prefixes:
            assert any(word.startswith(prefix) for word in text_words)
