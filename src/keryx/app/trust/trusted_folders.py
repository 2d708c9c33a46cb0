"""Which folders a person trusts: one record each, for all sessions of a home.

Trust is in a path and in the content of its files. Any process of the home reads the records; only
the host writes them.
"""

from __future__ import annotations

from typing import Final

import msgspec

from keryx.decoding import json_decoder
from keryx.ports.store import Store, blob_hash

TRUST: Final = "trust/"


class TrustedFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder that a person trusts, with the digest of what it brought along then."""

    workspace: str
    digest: str
    trusted_at: float
    by: str


_decode: Final = json_decoder(TrustedFolder).decode


def key_of(workspace: str) -> str:
    """Return the key of the record of this folder."""
    return f"{TRUST}{blob_hash(workspace.encode())}"


async def read_folders(store: Store) -> list[TrustedFolder]:
    """Return all trusted folders, by path."""
    records = await store.records(TRUST)
    return sorted(map(_decode, records.values()), key=lambda folder: folder.workspace)


async def trusted_digest(store: Store, workspace: str) -> str | None:
    """Return the digest that was trusted in this folder; None: the folder is not trusted."""
    record = await store.record(key_of(workspace))
    if record is None:
        return None
    folder = _decode(record[1])
    return folder.digest if folder.workspace == workspace else None


async def keep_folder(store: Store, folder: TrustedFolder) -> None:
    """Trust a folder; durable once this returns."""
    await store.keep_record(key_of(folder.workspace), msgspec.json.encode(folder))


async def drop_folder(store: Store, workspace: str) -> bool:
    """Trust a folder no more. False: it was not trusted."""
    return await store.drop_record(key_of(workspace))
