"""What all routes share: the way to the sessions, threads, and how things are named in requests."""

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
from keryx.errors import DeveloperMustActError, FencedError
from keryx.events import LoggedEvent, StepReplied, UsageRecorded
from keryx.ids import new_id
from keryx.messages import File, Image
from keryx.ports.dispatch import Answer, Done, Sent
from keryx.ports.store import SessionRow, UsageRow
from keryx.ports.view import SessionView
from keryx.server.access.auth import Access
from keryx.server.problems import ProblemError, not_found, unprocessable
from keryx.server.schemas import Attached, Spent, Uploaded, View

T = TypeVar("T")

UPLOAD_LIMIT: Final = 25 * 1024 * 1024
"""Bytes of one upload."""
MOST_UPLOADS: Final = 10_000
"""Uploads whose names are remembered until they are sent."""
LONGEST_NAME: Final = 200
UNKNOWN_TYPE: Final = "application/octet-stream"
# What every browser and model shows as a picture. SVG is not among them: it can hold scripts.
PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})

_MEDIA_TYPE: Final = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,99}/[a-z0-9][a-z0-9!#$&^_.+-]{0,99}")
_UNWANTED: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069/\\]+")


class Service:
    """Belongs to one loop."""

    def __init__(
        self,
        host_client: HostClient,
        threads: Bridge,
        access: Access,
        *,
        workspace: Path,
        version: str,
        upload_limit: int = UPLOAD_LIMIT,
    ) -> None:
        self.host_client = host_client
        self.threads = threads
        self.access = access
        self.workspace = workspace
        self.version = version
        self.upload_limit = upload_limit
        self._uploads: OrderedDict[str, Uploaded] = OrderedDict()

    # -- sessions

    async def row(self, session_id: str) -> SessionRow:
        """The session as the list shows it. Asked first by every route: no request makes one."""
        found = await self.host_client.store.session(session_id)
        if found is None:
            raise _no_session(session_id)
        return found

    async def view(self, session_id: str) -> View:
        """The session after one fact, and what was spent up to that very fact.

        Who reads on from it adds what later facts tell, and counts nothing twice or not at all.
        """
        account = await self.host_client.store.account(session_id)
        if account is None:
            raise _no_session(session_id)
        row, usage = account
        seen = await self._of(session_id, self.host_client.view(session_id))
        later = await self._between(row, seen.seq)
        return View(
            summary=row,
            seq=seen.seq,
            settings=seen.settings,
            turn=seen.turn,
            queue=seen.queue,
            approvals=seen.approvals,
            questions=seen.questions,
            calls=seen.calls,
            context=seen.context,
            usage=_spent(usage, later),
            draft=seen.draft,
        )

    async def _between(self, row: SessionRow, seq: int) -> list[LoggedEvent]:
        """What was committed after that row was read, up to that fact; mostly nothing."""
        count = seq - row.last_seq
        if count <= 0:
            return []
        return await self.host_client.store.events(row.session_id, after=row.last_seq, limit=count)

    # -- commands

    async def do(self, command: cm.Command) -> bool:
        """Whether it took effect."""
        answer = await self._tell(command)
        assert isinstance(answer, Done)
        return answer.done

    async def send(self, command: cm.SendMessage) -> Sent:
        answer = await self._tell(command)
        assert isinstance(answer, Sent)
        return answer

    async def _tell(self, command: cm.Command) -> Answer:
        """No command makes a session: one that is not there is refused by its host."""
        return await self._of(command.session_id, self.host_client.tell(command))

    async def _of(self, session_id: str, work: Awaitable[T]) -> T:
        """What fails because the session was deleted meanwhile is told so."""
        try:
            return await work
        except (DeveloperMustActError, FencedError):
            await self.row(session_id)
            raise

    @staticmethod
    def new_id() -> str:
        return new_id("c")

    # -- folders

    async def folder(self, named: str) -> str:
        """A workspace that is there; relative ones count from the server's own."""
        return await self.threads.to_thread(_folder, self.workspace, named)

    # -- attachments

    def remember(self, upload: Uploaded) -> None:
        self._uploads[upload.upload_id] = upload
        self._uploads.move_to_end(upload.upload_id)
        while len(self._uploads) > MOST_UPLOADS:
            self._uploads.popitem(last=False)

    async def attachments(
        self, session_id: str, wanted: Sequence[Attached]
    ) -> tuple[Image | File, ...]:
        """What was uploaded, as a message names it."""
        if all(each.upload_id in self._uploads or each.media_type for each in wanted):
            return tuple(self._attachment(each, {}) for each in wanted)
        # Uploaded before the server was started: the session may name it already.
        named = _named(await self.host_client.view(session_id))
        return tuple(self._attachment(each, named) for each in wanted)

    def _attachment(self, wanted: Attached, named: dict[str, Image | File]) -> Image | File:
        known = self._uploads.get(wanted.upload_id) or named.get(wanted.upload_id)
        kind = wanted.media_type or (UNKNOWN_TYPE if known is None else known.media_type)
        name = wanted.name or ("" if known is None else known.name)
        made = Image if kind in PICTURES else File
        return made(wanted.upload_id, clean_media_type(kind), clean_name(name))


def _spent(rows: Sequence[UsageRow], later: Iterable[LoggedEvent]) -> Spent:
    """What these rows tell, and what was spent since."""
    told = [each for each in later if isinstance(each, StepReplied | UsageRecorded)]
    used = [*rows, *(each.usage for each in told if each.usage is not None)]
    costs = [each.cost for each in (*rows, *told)]
    return Spent(
        input_tokens=sum(each.input_tokens for each in used),
        output_tokens=sum(each.output_tokens for each in used),
        cached_tokens=sum(each.cached_tokens for each in used),
        reasoning_tokens=sum(each.reasoning_tokens for each in used),
        cost=None if None in costs else sum(cost for cost in costs if cost is not None),
    )


def _no_session(session_id: str) -> ProblemError:
    return not_found(f"there is no session {session_id}", "GET /api/sessions lists those there are")


def _named(view: SessionView) -> dict[str, Image | File]:
    parts: Iterable[Image | File] = (part for message in view.queue for part in message.attachments)
    return {part.blob: part for part in (*parts, *view.draft.attachments)}


def _folder(workspace: Path, named: str) -> str:
    if "\0" in named:
        raise unprocessable("a path cannot hold a NUL character", "remove it")
    found = os.path.realpath(workspace / Path(named).expanduser())
    if not os.path.isdir(found):  # noqa: PTH112 (a text that came with the request)
        raise unprocessable(
            "the workspace is no folder on this machine", "choose one that is there, or make it"
        )
    return found


def clean_name(name: str) -> str:
    """A file's name without what could make it something else than a name."""
    last = _UNWANTED.sub("_", name).strip(" .")
    return last.encode(errors="replace").decode()[-LONGEST_NAME:]


def clean_media_type(text: str) -> str:
    """The type without its parameters, or the one that says nothing."""
    plain = text.partition(";")[0].strip().lower()
    return plain if _MEDIA_TYPE.fullmatch(plain) else UNKNOWN_TYPE
