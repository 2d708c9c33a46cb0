"""The interface of embedding models: texts become vectors, and near vectors mean near texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from keryx.errors import UserMustActError


class Embedder(Protocol):
    """An embedding model on this machine. Vectors of different models cannot be compared.

    It is loaded by the first `embed`, so an embedder costs nothing until it is used.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    @property
    def digest(self) -> str:
        """The SHA-256 of the weights, in hexadecimal digits."""
        ...

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return a vector of length one for each text: 32-bit floats, the lowest byte first.

        Blocking; it is called in threads, also in several at once when it is loaded.
        `EmbedderUnusableError` if it cannot be loaded.
        """
        ...


class EmbedderUnusableError(UserMustActError):
    """The model cannot be loaded here; the text says what to do. The search is by words alone."""
