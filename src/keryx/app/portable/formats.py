"""Finds out what a file of sessions is, and reads it whole or not at all."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from keryx.app.portable.foreign import hermes
from keryx.app.portable.foreign.hermes_database import read_database
from keryx.app.portable.foreign.message_lists import Conversation, read_messages
from keryx.app.portable.session_file import (
    FORMAT,
    SessionFile,
    decode_events,
    decode_session,
    named_blobs,
)
from keryx.errors import UserMustActError
from keryx.store.foreign_database import MAGIC

Read = list[SessionFile | Conversation]

LARGEST: Final = 1 << 30
"""Bytes of a file that is imported: all of it is in memory at once."""
LARGEST_CONTENT: Final = 256 * 1024 * 1024
"""Bytes of all files in an archive together: a small archive can hold very much."""
_ARCHIVES: Final = (b"PK\x03\x04", b"PK\x05\x06")
"""How archives begin: with a file, or with their end."""
# The others may take any amount of memory, whatever the sizes in the archive say.
_COMPRESSIONS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_FORMS: Final = (
    "a JSON export of Keryx or an archive of them, a list of messages with roles, or sessions, "
    "trajectories or the database of hermes-agent"
)


def read_file(data: bytes, name: str) -> Read:
    """Return the sessions in a file. `UserMustActError` names the place of what is wrong."""
    try:
        return _read(data)
    except ValueError as error:
        raise UserMustActError(f"{name}: {error}; nothing was imported") from error
    except RecursionError:
        raise UserMustActError(f"{name}: it is nested too deeply; nothing was imported") from None


def _read(data: bytes) -> Read:
    if data.startswith(MAGIC):
        return [*read_database(data)]
    return _read_archive(data) if data.startswith(_ARCHIVES) else _read_json(data)


def _read_archive(data: bytes) -> Read:
    """Read the files of an archive, as an export of several sessions is one."""
    sessions: Read = []
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            _check_entries(entries)
            for entry in entries:
                content = archive.read(entry)
                try:
                    sessions += _read_json(content)
                except ValueError as error:
                    raise ValueError(f"{entry.filename[:80]}: {error}") from error
    except RecursionError:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise ValueError(f"the archive cannot be read: {error}") from error
    return sessions


def _check_entries(entries: list[zipfile.ZipInfo]) -> None:
    if not entries:
        raise ValueError(f"the archive holds no file; its files must be {_FORMS}")
    for entry in entries:
        if not entry.filename.endswith((".json", ".jsonl", ".ndjson")):
            raise ValueError(
                f"{entry.filename[:80]} in the archive is no JSON; export the sessions as JSON: "
                "other formats are to read only"
            )
        if entry.compress_type not in _COMPRESSIONS:
            raise ValueError(
                f"{entry.filename[:80]} in the archive is compressed in an unusual way; make the "
                "archive again with deflate, which is what zip does by itself"
            )
    if sum(entry.file_size for entry in entries) > LARGEST_CONTENT:
        raise ValueError(
            f"the archive holds more than {LARGEST_CONTENT >> 20} MB; import its files in parts"
        )


def _read_json(data: bytes) -> Read:
    if not data.strip():
        raise ValueError(f"it is empty; it must be {_FORMS}")
    try:
        value: Any = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        lines = data.splitlines()
        if len([line for line in lines if line.strip()]) < 2:  # noqa: PLR2004 (lines are at least two)
            raise ValueError(f"it is not valid JSON: {error}") from error
        return _read_lines(lines)
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8: {error}") from error
    if isinstance(value, list):
        return _read_list(cast("list[object]", value))
    if isinstance(value, dict) and "seq" in value and "type" in value:
        return _read_lines(data.splitlines())
    return [_read_object(cast("object", value), data, "")]


def _read_object(value: object, data: bytes | None, place: str) -> SessionFile | Conversation:
    """Read one session. `data` is its text, if the whole file is this session."""
    session: Mapping[str, Any] = {}
    if isinstance(value, dict):
        session = cast("Mapping[str, Any]", value)
    if session.get("format") == FORMAT:
        return decode_session(msgspec.json.encode(value) if data is None else data)
    if "messages" in session:
        return hermes.read_session(session, place)
    if "conversations" in session:
        return hermes.read_trajectory(session, place)
    raise ValueError(f"{place.rstrip('.') or 'it'} is no session; it must be {_FORMS}")


def _read_list(values: list[object]) -> Read:
    is_of_sessions = bool(values) and isinstance(values[0], dict) and "role" not in values[0]
    if not is_of_sessions:
        return [read_messages(values, "messages")]
    return [
        _read_object(value, None, f"sessions[{number}].") for number, value in enumerate(values)
    ]


def _read_lines(lines: list[bytes]) -> Read:
    """Read JSON lines: events, messages, or sessions, one on each line."""
    values: list[tuple[int, Any, bytes]] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                values.append((number, msgspec.json.decode(line), line))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise ValueError(f"line {number} is not valid JSON: {error}") from error
    first = values[0][1]
    if isinstance(first, dict) and "seq" in first:
        return [_read_events([line for _, _, line in values])]
    if isinstance(first, dict) and "role" in first:
        return [read_messages([value for _, value, _ in values], "lines")]
    return [_read_object(value, None, f"line {number}: ") for number, value, _ in values]


def _read_events(lines: list[bytes]) -> SessionFile:
    events = decode_events(lines)
    if named_blobs(event for event in events if event.__struct_config__.tag != "prompt.changed"):
        raise ValueError(
            "these events name attachments or large results, which are not in the file; export the "
            "session with `--format json`"
        )
    return SessionFile(events=events)
