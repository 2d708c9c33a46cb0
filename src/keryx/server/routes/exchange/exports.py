"""Sessions as files: one, or several in one archive."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Annotated, Final, Literal
from urllib.parse import quote

from litestar import Response, get
from litestar.params import QueryParameter
from litestar.response import Stream

from keryx import events as ev
from keryx.app.portable.html_page import as_html
from keryx.app.portable.markdown_document import as_markdown
from keryx.app.portable.session_file import SessionFile, encode_session, read_session
from keryx.errors import UserMustActError
from keryx.ports.store import SessionRow, Store
from keryx.server.problems import unprocessable
from keryx.server.routes.params import SessionId, TheService
from keryx.server.schemas import ID_PATTERN
from keryx.server.service import Service, clean_name

EVENTS_AT_ONCE: Final = 500
MOST_EXPORTED: Final = 200
"""Sessions in one archive."""
LONGEST_NAME: Final = 60
LINES: Final = "application/x-ndjson"
ARCHIVE: Final = "application/zip"
_EARLIEST: Final = (1980, 1, 1, 0, 0, 0)
"""The date of files in an archive: the same sessions give the same archive."""

Format = Literal["jsonl", "json", "markdown", "html"]
FormatName = Annotated[
    Format,
    QueryParameter(
        name="format",
        description="jsonl: the events; json: complete, to import; markdown and html: to read.",
    ),
]
SessionIds = Annotated[
    list[Annotated[str, QueryParameter(pattern=ID_PATTERN)]],
    QueryParameter(name="session_id", description="The sessions, at most 200."),
]
ENCODERS: Final[dict[Format, tuple[str, str, Callable[[SessionFile], bytes]]]] = {
    "json": ("json", "application/json", encode_session),
    "markdown": ("md", "text/markdown", as_markdown),
    "html": ("html", "text/html", as_html),
}


@get("/api/sessions/{session_id:str}/export", media_type=LINES)
async def export(
    service: TheService, session_id: SessionId, format_: FormatName = "jsonl"
) -> Stream | Response[bytes]:
    """The session as a file."""
    row = await service.row(session_id)
    if format_ == "jsonl":
        lines = _lines(service.host_client.store, session_id)
        return Stream(lines, media_type=LINES, headers=_attached(f"{session_id}.ndjson"))
    ending, media_type, _ = ENCODERS[format_]
    content = await _encoded(service, session_id, format_)
    return Response(content, media_type=media_type, headers=_attached(file_name(row, ending)))


@get("/api/exports", media_type=ARCHIVE)
async def export_several(
    service: TheService, session_ids: SessionIds, format_: FormatName = "json"
) -> Stream:
    """Several sessions: an archive with a file for each, or with `jsonl` a session on each line."""
    if not 0 < len(session_ids) <= MOST_EXPORTED:
        raise unprocessable(
            f"An export has 1 to {MOST_EXPORTED} sessions, and these are {len(session_ids)}",
            "choose fewer sessions, and export them in parts",
        )
    rows = [await service.row(session_id) for session_id in dict.fromkeys(session_ids)]
    if format_ == "jsonl":
        return Stream(
            _sessions(service, rows), media_type=LINES, headers=_attached("sessions.jsonl")
        )
    archive = _archive(service, rows, format_)
    return Stream(archive, media_type=ARCHIVE, headers=_attached("sessions.zip"))


async def _lines(store: Store, session_id: str) -> AsyncGenerator[bytes]:
    after = 0
    while facts := await store.events(session_id, after=after, limit=EVENTS_AT_ONCE):
        yield b"".join(ev.encode(fact).replace(b"\n", b" ") + b"\n" for fact in facts)
        after = facts[-1].seq


async def _encoded(service: Service, session_id: str, format_: Format) -> bytes:
    session = await read_session(service.host_client.store, session_id)
    return await service.threads.to_thread(ENCODERS[format_][2], session)


async def _sessions(service: Service, rows: Sequence[SessionRow]) -> AsyncGenerator[bytes]:
    for row in rows:
        try:
            yield await _encoded(service, row.session_id, "json")
        except UserMustActError:
            continue  # deleted meanwhile


async def _archive(
    service: Service, rows: Sequence[SessionRow], format_: Format
) -> AsyncGenerator[bytes]:
    """Yield the archive piece by piece: only one session is in memory at a time."""
    sink = _Sink()
    names: set[str] = set()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for row in rows:
            try:
                content = await _encoded(service, row.session_id, format_)
            except UserMustActError:
                continue  # deleted meanwhile
            name = file_name(row, ENCODERS[format_][0])
            if name in names:
                name = f"{row.session_id}-{name}"
            names.add(name)
            entry = zipfile.ZipInfo(name, _EARLIEST)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o600 << 16
            await service.threads.to_thread(archive.writestr, entry, content)
            yield sink.taken()
    yield sink.taken()


class _Sink(io.RawIOBase):
    """Collects what an archive writes, until it is sent."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: object, /) -> int:
        piece = bytes(memoryview(data))  # pyright: ignore[reportArgumentType] (any buffer)
        self._pieces.append(piece)
        return len(piece)

    def taken(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


def file_name(row: SessionRow, ending: str) -> str:
    """Return a file name that says what the session is about."""
    title = re.sub(r"[\s<>:\"|?*]+", " ", clean_name(row.title)).strip(" .")
    return f"{title[:LONGEST_NAME].strip(' .') or row.session_id}.{ending}"


def _attached(name: str) -> dict[str, str]:
    return {"content-disposition": f"attachment; filename*=UTF-8''{quote(name)}"}


ROUTES = (export, export_several)
