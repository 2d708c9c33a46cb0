"""WordPiece of BERT, uncased: splits texts into the pieces that the model has numbers for."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

UNKNOWN: Final = "[UNK]"
FIRST: Final = "[CLS]"
LAST: Final = "[SEP]"
# A longer word is unknown as a whole, as in the training of the model.
MAX_WORD: Final = 100
# The blocks of ideographs that the model was trained with, one word for each character. Hangul and
# kana are not among them.
_IDEOGRAPHS: Final = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
_REMOVED: Final = frozenset(("Cc", "Cf", "Co"))
_ASCII_SIGNS: Final = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


class WordPiece:
    """Turns texts into the numbers of their pieces."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._numbers: Mapping[str, int] = {piece: at for at, piece in enumerate(vocabulary)}

    def encode(self, text: str, limit: int) -> list[int]:
        """Return the numbers between the marks of begin and end, at most `limit` with them."""
        numbers = [self._numbers[FIRST]]
        for word in words_of(text):
            if len(numbers) >= limit - 1:
                break
            numbers += [self._numbers[piece] for piece in self.pieces(word)]
        return [*numbers[: limit - 1], self._numbers[LAST]]

    def pieces(self, word: str) -> list[str]:
        """Return the longest pieces, from the left; a word that has none is unknown."""
        if len(word) > MAX_WORD:
            return [UNKNOWN]
        pieces: list[str] = []
        start = 0
        while start < len(word):
            mark = "##" if start else ""
            for end in range(len(word), start, -1):
                piece = mark + word[start:end]
                if piece in self._numbers:
                    break
            else:
                return [UNKNOWN]
            pieces.append(piece)
            start = end
        return pieces


def words_of(text: str) -> Iterator[str]:
    """Yield the words in small letters without accents; signs and ideographs are words too."""
    for word in "".join(map(_cleaned, text)).split():
        letters: list[str] = []
        # Each letter by itself: `word.lower()` would write a Greek sigma at the end differently.
        for letter in unicodedata.normalize("NFD", "".join(map(str.lower, word))):
            if unicodedata.category(letter) == "Mn":
                continue
            if not _is_sign(letter):
                letters.append(letter)
                continue
            if letters:
                yield "".join(letters)
                letters.clear()
            yield letter
        if letters:
            yield "".join(letters)


def _cleaned(letter: str) -> str:
    if letter.isascii() and letter.isprintable():
        return letter
    category = unicodedata.category(letter)
    if letter in "\t\n\r" or category == "Zs":
        return " "
    if letter == "\ufffd" or category in _REMOVED:
        return ""
    code = ord(letter)
    return f" {letter} " if any(low <= code <= high for low, high in _IDEOGRAPHS) else letter


def _is_sign(letter: str) -> bool:
    return letter in _ASCII_SIGNS or unicodedata.category(letter)[0] == "P"
