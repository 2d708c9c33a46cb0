"""Small private files in the home: readable by their owner only, replaced atomically."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_private(path: Path, data: bytes) -> None:
    """Replace the file. Uses the disk; `OSError` if it cannot be written."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new_path = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(new_path, flags, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        new_path.replace(path)
    except BaseException:
        new_path.unlink(missing_ok=True)
        raise
