"""WordPiece gives the numbers that the model was trained with."""

from __future__ import annotations

import pytest

from keryx.memory.providers.vector.minilm import read_vocabulary
from keryx.memory.providers.vector.wordpiece import WordPiece

pytestmark = pytest.mark.promise("003.1")

PIECES = WordPiece(read_vocabulary())


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("", []),
        (" \t\n\u00a0\u3000", []),
        ("Unbelievable", [23653]),
        ("embeddings", [7861, 8270, 4667, 2015]),
        (
            "don't stop-believing! 3.14€ a_b",
            [2123, 1005, 1056, 2644, 1011, 8929, 999, 1017, 1012, 2403, 30102, 1037, 1035, 1038],
        ),
        ("Grüße — façade naïve", [24665, 2226, 17499, 1517, 8508, 15743]),
        ("e\u0301cole École", [12431, 12431]),
        ("ΣΊΣΥΦΟΣ", [1173, 18199, 29733, 29735, 29736, 29730, 29733]),
        ("İstanbul", [9960]),
        ("日本語", [1864, 1876, 1950]),
        (
            "한국어 テスト",
            [1469, 30006, 30021, 29991, 30014, 30020, 29999, 30008, 1713, 30233, 30240],
        ),
        ("\u200bzero\u00adwidth\ufffd\0 nul", [5717, 9148, 11927, 2232, 16371, 2140]),
        ("x" * 101 + " y", [100, 1061]),
        # What a person types is text: it cannot end the sequence or hide a piece of it.
        ("[CLS] hi [MASK]", [1031, 18856, 2015, 1033, 7632, 1031, 7308, 1033]),
    ],
)
def test_a_text_becomes_the_pieces_of_bert(text: str, numbers: list[int]) -> None:
    assert PIECES.encode(text, 256) == [101, *numbers, 102]


def test_a_long_text_is_cut_and_ended() -> None:
    assert PIECES.encode("one two three four " * 100, 8) == [
        101,
        2028,
        2048,
        2093,
        2176,
        2028,
        2048,
        102,
    ]
    assert PIECES.encode("embeddings " * 9, 8) == [101, 7861, 8270, 4667, 2015, 7861, 8270, 102]
