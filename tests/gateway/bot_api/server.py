"""The server: queues of updates with offsets, chats with messages, and faults."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Literal, Self

from aiohttp import web

from tests.gateway.bot_api.rules import (
    LONGEST_TEXT,
    ApiError,
    SentMessage,
    ShownDraft,
    checked_buttons,
    checked_entities,
    checked_fields,
    checked_text,
    utf16,
)

TOKEN = "123456:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"
ME: dict[str, Any] = {
    "id": 123456,
    "is_bot": True,
    "first_name": "Keryx",
    "username": "keryx_bot",
    "can_read_all_group_messages": False,
}
Fault = Literal["hang after", "hang before", "reset before", "reset after", "html", "flood", "500"]
"""before: nothing happened yet; after: the request has taken effect, and the answer is lost."""
FaultOf = Callable[[str, dict[str, Any]], Fault | None]
PATIENCE = 30.0


class BotApi:
    """Serves while it is entered."""

    def __init__(self, *, fault: FaultOf | None = None, retry_after: int = 1) -> None:
        self.fault = fault
        self.retry_after = retry_after
        self.url = ""
        self.updates: dict[int, dict[str, Any]] = {}
        """Those that are not acknowledged."""
        self.acknowledged: list[int] = []
        self.messages: defaultdict[int, dict[int, SentMessage]] = defaultdict(dict)
        """By chat and number; numbers rise, so they are in order."""
        self.calls: list[tuple[str, dict[str, Any]]] = []
        """Those that succeeded."""
        self.requested: list[str] = []
        """The methods of all calls."""
        self.floods = 0
        """How many calls were answered with 429."""
        self.toasts: list[str] = []
        self.files: dict[str, bytes] = {}
        self.lost_files: set[str] = set()
        """Those that cannot be downloaded, although they are there."""
        self.webhook: dict[str, Any] | None = None
        self.drafts: dict[tuple[int, int], ShownDraft] = {}
        self.repeats = False
        """Whether updates are given again although they are acknowledged."""
        self.is_revoked = False
        """Whether the token was taken from the bot."""
        self.conflicts = 0
        """How many requests for updates are still answered with 409."""
        self.refuses_formatting = False
        self.last_id = 0
        """The id of the last message that a person wrote."""
        self._last_update = 0
        self._numbers = itertools.count(1)
        self._ids = itertools.count(500)
        self._changed = asyncio.Event()
        self._polls: list[asyncio.Event] = []
        self._closed_until: dict[str, float] = {}
        self.calls_while_closed = 0
        self._runner: web.AppRunner | None = None
        self._port = 0

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("*", "/bot{token}/{method}", self._respond)
        app.router.add_get("/file/bot{token}/{path}", self._file)
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=0.05
        )
        await self._runner.setup()
        listener = socket.create_server(("127.0.0.1", self._port), backlog=256)
        self._port = listener.getsockname()[1]
        await web.SockSite(self._runner, listener).start()
        self.url = f"http://127.0.0.1:{self._port}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    # -- what tests do and see

    def push(self, update: dict[str, Any], update_id: int | None = None) -> int:
        number = next(self._numbers) if update_id is None else update_id
        self._last_update = max(self._last_update, number)
        self.updates[number] = {"update_id": number, **update}
        for poll in self._polls:
            poll.set()
        return number

    def forget_floods(self, remembered: Iterable[str]) -> None:
        """Let go of the chats that were asked to wait, except for these."""
        for chat in self._closed_until.keys() - set(remembered):
            del self._closed_until[chat]

    def begin_numbers_anew(self) -> None:
        """As after a week without updates: the next one may have any number."""
        self._last_update = 0

    def say(
        self,
        person: int,
        text: str,
        *,
        chat: int | None = None,
        update_id: int | None = None,
        **fields: Any,
    ) -> int:
        self.last_id = next(self._ids)
        written = message(person, text, self.last_id, chat=chat, **fields)
        return self.push({"message": written}, update_id)

    def change(
        self, person: int, message_id: int, text: str, *, chat: int | None = None, **fields: Any
    ) -> int:
        """The person edits a message."""
        changed = message(person, text, message_id, chat=chat, edit_date=1_700_000_001, **fields)
        return self.push({"edited_message": changed})

    def stop_draft(self, draft: ShownDraft) -> int:
        chat = {"id": draft.chat, "type": "private", "first_name": "Somebody"}
        return self.push({"stopped_message_generation": {"chat": chat, "draft_id": draft.draft_id}})

    def calls_of(self, method: str) -> list[dict[str, Any]]:
        return [fields for name, fields in self.calls if name == method]

    def press(self, person: int, sent: SentMessage, data: str) -> int:
        stub = message(ME["id"], sent.text, sent.message_id, chat=sent.chat)
        press = {"id": str(next(self._ids)), "from": user(person), "chat_instance": "1"}
        return self.push({"callback_query": {**press, "message": stub, "data": data}})

    @property
    def webhook_secret(self) -> bytes:
        assert self.webhook is not None
        return str(self.webhook["secret_token"]).encode()

    def sent(self, chat: int) -> list[SentMessage]:
        """The bot's messages in a chat, in order."""
        return [*self.messages[chat].values()]

    def texts(self, chat: int) -> list[str]:
        return [message.text for message in self.sent(chat)]

    async def wait(self, condition: Callable[[], Any], patience: float = PATIENCE) -> Any:
        async with asyncio.timeout(patience):
            while not (value := condition()):
                self._changed.clear()
                await self._changed.wait()
        return value

    # -- requests

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        try:
            if request.match_info["token"] != TOKEN or self.is_revoked:
                raise ApiError(401, "Unauthorized")  # noqa: TRY301 (answered below)
            fields = await _fields(request)
            self.requested.append(method)
            self._changed.set()
            checked_fields(method, fields)
            fault = None if self.fault is None else self.fault(method, fields)
            await self._before(fault, method, fields, request)
            if method == "getUpdates":
                result = await self._get_updates(fields)
            else:
                result = self._act(method, fields)
            self.calls.append((method, fields))
            self._changed.set()
            await self._after(fault, request)
        except ApiError as error:
            body: dict[str, Any] = {
                "ok": False,
                "error_code": error.code,
                "description": error.description,
            }
            if error.parameters:
                body["parameters"] = error.parameters
            return web.json_response(body, status=error.code)
        return web.json_response({"ok": True, "result": result})

    async def _before(
        self, fault: Fault | None, method: str, fields: dict[str, Any], request: web.Request
    ) -> None:
        now, chat = asyncio.get_running_loop().time(), str(fields.get("chat_id") or method)
        if now < self._closed_until.get(chat, 0.0) - 0.05:
            self.calls_while_closed += 1
        match fault:
            case "flood":
                self.floods += 1
                self._changed.set()
                self._closed_until[chat] = now + self.retry_after
                raise ApiError(
                    429,
                    f"Too Many Requests: retry after {self.retry_after}",
                    retry_after=self.retry_after,
                )
            case "hang before":
                await asyncio.Event().wait()
            case "reset before":
                _reset(request)
            case "500":
                raise ApiError(500, "Internal Server Error")
            case _:
                return

    async def _after(self, fault: Fault | None, request: web.Request) -> None:
        match fault:
            case "hang after":
                await asyncio.Event().wait()
            case "reset after":
                _reset(request)
            case "html":
                raise web.HTTPBadGateway(text="<html>502 Bad Gateway</html>")
            case _:
                return

    def _refuse_conflicts(self) -> None:
        if self.webhook is not None:
            raise ApiError(409, "Conflict: can't use getUpdates method while webhook is active")
        if self.conflicts > 0:
            self.conflicts -= 1
            raise ApiError(409, "Conflict: terminated by other getUpdates request")

    def _drop_unwanted(self, fields: dict[str, Any]) -> None:
        """Forget updates of kinds that the bot does not ask for."""
        allowed = fields.get("allowed_updates") or ["message", "callback_query"]
        for number, update in list(self.updates.items()):
            if not any(kind in allowed for kind in update):
                del self.updates[number]

    async def _get_updates(self, fields: dict[str, Any]) -> list[dict[str, Any]]:
        self._refuse_conflicts()
        if self._polls:
            # The newer request wins, as with the real server.
            self._polls[0].set()
        offset = fields.get("offset")
        # An offset beyond the last update, after the numbers began anew, acknowledges nothing.
        if offset is not None and not self.repeats and int(offset) <= self._last_update + 1:
            for number in [number for number in self.updates if number < int(offset)]:
                del self.updates[number]
                self.acknowledged.append(number)
            self._changed.set()
        poll = asyncio.Event()
        self._polls.append(poll)
        try:
            if not self.updates:
                try:
                    async with asyncio.timeout(float(fields.get("timeout") or 0)):
                        await poll.wait()
                except TimeoutError:
                    return []
            if self._polls[-1] is not poll:
                raise ApiError(409, "Conflict: terminated by other getUpdates request")
            if self.repeats:
                poll_pause = asyncio.sleep(0.05)
                await poll_pause
            self._drop_unwanted(fields)
            return list(self.updates.values())[: int(fields.get("limit") or 100)]
        finally:
            self._polls.remove(poll)

    def _act(self, method: str, fields: dict[str, Any]) -> Any:  # noqa: PLR0911 (one a method)
        match method:
            case "getMe":
                return ME
            case "deleteWebhook":
                self.webhook = None
                return True
            case "setWebhook":
                self.webhook = fields
                return True
            case "answerCallbackQuery":
                self.toasts.append(str(fields.get("text", "")))
                return True
            case "getFile":
                name = fields["file_id"]
                if name not in self.files:
                    raise ApiError(400, "Bad Request: invalid file_id")
                size = len(self.files[name])
                return {
                    "file_id": name,
                    "file_unique_id": name,
                    "file_size": size,
                    "file_path": name,
                }
            case "editMessageText":
                return self._edit(fields)
            case "sendMessageDraft":
                return self._draft(fields)
            case _:
                return self._send(method, fields)

    def _send(self, method: str, fields: dict[str, Any]) -> dict[str, Any]:
        chat, number = int(fields["chat_id"]), next(self._ids)
        reply = json.loads(fields.get("reply_parameters") or "{}")
        topic = fields.get("message_thread_id")
        assert topic != "1", "the General topic has no thread id"
        sent = SentMessage(
            chat,
            number,
            "",
            topic=None if topic is None else int(topic),
            reply_to=reply.get("message_id"),
        )
        if method == "sendMessage":
            sent.text = checked_text(fields)
            sent.entities = self._entities(fields, sent.text)
            sent.buttons = checked_buttons(fields)
        else:
            sent.kind = method.removeprefix("send").lower()
            sent.file = next(value for value in fields.values() if isinstance(value, bytes))
        self.messages[chat][number] = sent
        return self._shown(sent)

    def _draft(self, fields: dict[str, Any]) -> bool:
        chat, draft_id, text = int(fields["chat_id"]), int(fields["draft_id"]), fields["text"]
        if chat < 0:
            raise ApiError(400, "Bad Request: drafts can be sent to private chats only")
        if draft_id == 0 or utf16(text) > LONGEST_TEXT:
            raise ApiError(400, "Bad Request: DRAFT_INVALID")
        before = self.drafts.get((chat, draft_id))
        times = 1 if before is None else before.times + 1
        can_stop = fields.get("can_stop") == "true"
        self.drafts[chat, draft_id] = ShownDraft(chat, draft_id, text, can_stop, times)
        return True

    def _entities(self, fields: dict[str, Any], text: str) -> list[dict[str, Any]]:
        entities = checked_entities(fields, text)
        if entities and self.refuses_formatting:
            raise ApiError(400, "Bad Request: can't parse entities: unsupported entity")
        return entities

    def _edit(self, fields: dict[str, Any]) -> dict[str, Any]:
        sent = self.messages[int(fields["chat_id"])].get(int(fields["message_id"]))
        if sent is None:
            raise ApiError(400, "Bad Request: message to edit not found")
        text = checked_text(fields)
        entities, buttons = self._entities(fields, text), checked_buttons(fields)
        if (text, entities, buttons) == (sent.text, sent.entities, sent.buttons):
            raise ApiError(
                400,
                "Bad Request: message is not modified: specified new message content and reply "
                "markup are exactly the same as a current content and reply markup of the message",
            )
        sent.text, sent.entities, sent.buttons = text, entities, buttons
        sent.edits += 1
        return self._shown(sent)

    def _shown(self, sent: SentMessage) -> dict[str, Any]:
        return message(ME["id"], sent.text, sent.message_id, chat=sent.chat)

    async def _file(self, request: web.Request) -> web.Response:
        path = request.match_info["path"]
        if path not in self.files or path in self.lost_files:
            return web.Response(status=404)
        return web.Response(body=self.files[request.match_info["path"]])


def user(person: int) -> dict[str, Any]:
    if person == ME["id"]:
        return {name: ME[name] for name in ("id", "is_bot", "first_name", "username")}
    return {"id": person, "is_bot": False, "first_name": f"Person {person}"}


def message(
    person: int, text: str, message_id: int, *, chat: int | None = None, **fields: Any
) -> dict[str, Any]:
    place = person if chat is None else chat
    kind = "supergroup" if place < 0 else "private"
    return {
        "message_id": message_id,
        "date": 1_700_000_000,
        "chat": {"id": place, "type": kind, "first_name": "Somebody", "title": "A group"},
        "from": user(person),
        **({"text": text} if text else {}),
        **fields,
    }


async def _fields(request: web.Request) -> dict[str, Any]:
    if request.content_type == "application/json":
        return dict(await request.json())
    fields: dict[str, Any] = {}
    for name, value in (await request.post()).items():
        if isinstance(value, web.FileField):
            fields[name] = value.file.read()
        elif not (isinstance(value, str) and value.startswith("attach://")):
            fields[name] = value
    return fields


def _reset(request: web.Request) -> None:
    """Cut the connection."""
    assert request.transport is not None
    request.transport.abort()
    raise asyncio.CancelledError
