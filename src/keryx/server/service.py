"""What all routes share: sessions, commands, folders and attachments."""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Awaitable, Iterable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from keryx import commands as cm
from keryx.aio.bridge import Bridge
from keryx.app.host_client import HostClient
from keryx.app.settings.settings_file import SettingsFile
from keryx.errors import DeveloperMustActError, FencedError
from keryx.events import LoggedEvent, StepReplied, UsageRecorded
from keryx.ids import new_id
from keryx.messages import File, Image
from keryx.ports.dispatch import Answer, Done, Sent
from keryx.ports.store import SessionRow
from keryx.ports.usage import UsageRow
from keryx.ports.view import SessionView
from keryx.server.access.auth import Access
from keryx.server.problems import ProblemError, not_found, unprocessable
from keryx.server.schemas import Attached, Spent, Uploaded, View

T = TypeVar("T")

UPLOAD_LIMIT: Final = 25 * 1024 * 1024
"""Bytes of one upload."""
MOST_UPLOADS: Final = 10_000
"""Uploads whose names are remembered until a message uses them."""
LONGEST_NAME: Final = 200
UNKNOWN_TYPE: Final = "application/octet-stream"
# Types that every browser and model can show. SVG is missing because it can hold scripts.
PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})

_MEDIA_TYPE: Final = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,99}/[a-z0-9][a-z0-9!#$&^_.+-]{0,99}")
_UNWANTED: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069/\\]+")


class Service:
    """Gives routes access to the host. Belongs to one loop."""

    def __init__(
        self,
        host_client: HostClient,
        threads: Bridge,
        access: Access,
        *,
        workspace: Path,
        version: str,
        upload_limit: int = UPLOAD_LIMIT,
        fence: Path | None = None,
    ) -> None:
        """`fence`: sessions work in this folder and below it only; None: in any folder."""
        self.host_client = host_client
        self.threads = threads
        self.access = access
        self.workspace = workspace
        self.version = version
        self.upload_limit = upload_limit
        self._fence = fence
        self.settings_file = SettingsFile()
        self._uploads: OrderedDict[str, Uploaded] = OrderedDict()

    # -- sessions

    async def row(self, session_id: str) -> SessionRow:
        """Return the session as the list shows it; `ProblemError` if it does not exist.

        Routes call this first: no request may create a session by its id alone.
        """
        row = await self.host_client.store.session(session_id)
        if row is None:
            raise _no_session(session_id)
        return row

    async def view(self, session_id: str) -> View:
        """Return the session as of one event, with the usage up to exactly that event.

        A client that follows the events after it adds their usage, and counts nothing twice.
        """
        account = await self.host_client.store.account(session_id)
        if account is None:
            raise _no_session(session_id)
        row, usage = account
        view = await self._or_not_found(session_id, self.host_client.view(session_id))
        later = await self._events_between(row, view.seq)
        return View(
            summary=row,
            seq=view.seq,
            settings=view.settings,
            turn=view.turn,
            queue=view.queue,
            approvals=view.approvals,
            questions=view.questions,
            calls=view.calls,
            context=view.context,
            usage=_total(usage, later),
            draft=view.draft,
        )

    async def _events_between(self, row: SessionRow, seq: int) -> list[LoggedEvent]:
        """Return the events after the row was read, up to `seq`; mostly none."""
        count = seq - row.last_seq
        if count <= 0:
            return []
        return await self.host_client.store.events(row.session_id, after=row.last_seq, limit=count)

    # -- commands

    async def do(self, command: cm.Command) -> bool:
        """Give the command to its session; return whether it took effect."""
        answer = await self._tell(command)
        assert isinstance(answer, Done)
        return answer.done

    async def send(self, command: cm.SendMessage) -> Sent:
        answer = await self._tell(command)
        assert isinstance(answer, Sent)
        return answer

    async def _tell(self, command: cm.Command) -> Answer:
        """Give the command to its session; the host refuses it if there is no such session."""
        return await self._or_not_found(command.session_id, self.host_client.tell(command))

    async def _or_not_found(self, session_id: str, work: Awaitable[T]) -> T:
        """Do the work; if it fails because the session was deleted, raise "not found" instead."""
        try:
            return await work
        except (DeveloperMustActError, FencedError):
            await self.row(session_id)
            raise

    @staticmethod
    def new_id() -> str:
        return new_id("c")

    # -- folders

    async def folder(self, path: str) -> str:
        """Return an existing folder; a relative path starts at the server's own workspace."""
        return await self.threads.to_thread(_folder, self.workspace, path, self._fence)

    # -- attachments

    def remember(self, upload: Uploaded) -> None:
        self._uploads[upload.upload_id] = upload
        self._uploads.move_to_end(upload.upload_id)
        while len(self._uploads) > MOST_UPLOADS:
            self._uploads.popitem(last=False)

    async def attachments(
        self, session_id: str, references: Sequence[Attached]
    ) -> tuple[Image | File, ...]:
        """Return the uploads that a message refers to, as parts of the message."""
        if all(item.upload_id in self._uploads or item.media_type for item in references):
            return tuple(self._attachment(item, {}) for item in references)
        # Uploaded before the server was restarted: the queue or the draft may hold the part.
        parts = _attached_parts(await self.host_client.view(session_id))
        return tuple(self._attachment(item, parts) for item in references)

    def _attachment(self, reference: Attached, parts: dict[str, Image | File]) -> Image | File:
        upload = self._uploads.get(reference.upload_id) or parts.get(reference.upload_id)
        media_type = reference.media_type or (UNKNOWN_TYPE if upload is None else upload.media_type)
        name = reference.name or ("" if upload is None else upload.name)
        part_type = Image if media_type in PICTURES else File
        return part_type(reference.upload_id, clean_media_type(media_type), clean_name(name))


def _total(rows: Sequence[UsageRow], later: Iterable[LoggedEvent]) -> Spent:
    """Return the sum of these rows and of the usage in the later events."""
    events = [
        event
        for event in later
        if isinstance(event, StepReplied)
        or (isinstance(event, UsageRecorded) and event.purpose != "agent")
    ]
    usages = [*rows, *(event.usage for event in events if event.usage is not None)]
    costs = [item.cost for item in (*rows, *events)]
    return Spent(
        input_tokens=sum(usage.input_tokens for usage in usages),
        output_tokens=sum(usage.output_tokens for usage in usages),
        cached_tokens=sum(usage.cached_tokens for usage in usages),
        reasoning_tokens=sum(usage.reasoning_tokens for usage in usages),
        cost=None if None in costs else sum(cost for cost in costs if cost is not None),
    )


def _no_session(session_id: str) -> ProblemError:
    return not_found(f"There is no session {session_id}", "GET /api/sessions lists all sessions")


def _attached_parts(view: SessionView) -> dict[str, Image | File]:
    parts: Iterable[Image | File] = (part for message in view.queue for part in message.attachments)
    return {part.blob: part for part in (*parts, *view.draft.attachments)}


def _folder(workspace: Path, path: str, fence: Path | None) -> str:
    if "\0" in path:
        raise unprocessable("The path of a folder cannot hold a NUL character", "remove it")
    folder = os.path.realpath(workspace / Path(path).expanduser())
    if not os.path.isdir(folder):  # noqa: PTH112 (a text that came with the request)
        raise unprocessable(
            "That folder doesn't exist on the machine that runs Keryx",
            "create it there, or choose another folder",
        )
    if fence is not None and not Path(folder).is_relative_to(fence):
        raise unprocessable(
            "Your sessions work in your own folder", f"choose {fence} or a folder in it"
        )
    return folder


def clean_name(name: str) -> str:
    """Return a file name without separators and control characters."""
    last = _UNWANTED.sub("_", name).strip(" .")
    return last.encode(errors="replace").decode()[-LONGEST_NAME:]


def clean_media_type(text: str) -> str:
    """Return the media type without its parameters; an invalid one becomes the general type."""
    plain = text.partition(";")[0].strip().lower()
    return plain if _MEDIA_TYPE.fullmatch(plain) else UNKNOWN_TYPE
