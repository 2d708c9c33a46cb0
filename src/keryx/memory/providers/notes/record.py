"""What Keryx wrote last into a file of notes, and what of a change is not finished.

It stands in a hidden file beside. Compared with it, a file shows what people did.
"""

from __future__ import annotations

import hashlib
import os

import msgspec

from keryx.decoding import decode_json
from keryx.memory.providers.notes.merging import Edit
from keryx.memory.providers.notes.safe_files import read_file, write_file
from keryx.ports.memory import Memory

MAX_RECORD = 4_000_000


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a file of notes, or a change that is under way.

    While a change is under way, `base` and `ours` say what it started from: the memories that were
    in the file, and the same with the changes of agents.
    """

    profile: str
    workspace: str
    written: tuple[Memory, ...] = ()
    digest: str = ""
    """Of the content that was written."""
    ended: tuple[str, ...] = ()
    """Memories that people removed lately: a late delivery must not bring them back."""
    pending: tuple[Edit, ...] = ()
    """What people did, and the memory does not know yet."""
    base: tuple[Memory, ...] = ()
    ours: tuple[Memory, ...] = ()
    seen: str = ""
    """The digest of the content that the change started from."""
    pending_before: tuple[Edit, ...] = ()

    def finished(self) -> Record:
        """Return the record of a change that is finished."""
        return msgspec.structs.replace(self, base=(), ours=(), seen="", pending_before=())


def digest_of(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def load(folder: int, name: str) -> Record | None:
    """Read a record. None: there is none, or nobody can read it."""
    content = read_file(folder, name, MAX_RECORD)
    if content is None:
        return None
    try:
        return decode_json(content, Record)
    except msgspec.DecodeError:
        return None


def save(folder: int, name: str, record: Record) -> None:
    temporary = f"{name}.new"
    write_file(folder, temporary, msgspec.json.encode(record))
    os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
