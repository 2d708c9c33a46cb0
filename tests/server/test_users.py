"""Several people on one server: each one sees only what is their own."""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from keryx.aio.loops import LoopThread
from keryx.events import Usage
from keryx.models.scripted import ScriptedCall, ScriptedReply
from keryx.server.access.users import Users
from tests.server.served_host import (
    PATIENCE,
    Client,
    Gate,
    ServedHost,
    echo,
    in_thread,
    scripted,
    served_host,
)

pytestmark = pytest.mark.promise("page20.40")

MARK = "cormorant"  # only Anna says it
PASSWORD = "correct horse"
EXAMPLES = 12
SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
NO_SERVER_ERROR: Any = importlib.import_module("schemathesis.checks").not_a_server_error


async def signed_in(here: ServedHost, name: str, password: str = PASSWORD) -> Client:
    browser = here.browser(Origin=here.server.url.rstrip("/"))
    answer = await browser.ask("POST", "/api/login", json={"name": name, "password": password})
    assert answer.status == 204, answer.raw
    return browser


async def test_named_users_sign_in_and_see_only_their_own_sessions(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        assert (await here.client.get("/api/health"))["asks_name"] is False
        await in_thread(Users(here.home).add, "anna", PASSWORD)
        await in_thread(Users(here.home).add, "ben", PASSWORD)
        anna, ben = await signed_in(here, "anna"), await signed_in(here, "ben")
        assert (await here.browser().get("/api/health"))["asks_name"] is True
        assert (await anna.get("/api/me"))["user"] == "anna"

        session_id = await anna.open()
        sent = await anna.say(session_id, f"the {MARK} dives")
        await anna.finished(session_id, sent["turn_id"])

        for other in (ben, here.client):
            assert (await other.get("/api/sessions"))["sessions"] == []
            assert (await other.get(f"/api/sessions?search={MARK}"))["hits"] == []
            assert (await other.get("/api/usage"))["rows"] == []
            (await other.ask("GET", f"/api/sessions/{session_id}")).problem(404, "not_found")
        assert len((await anna.get("/api/sessions"))["sessions"]) == 1
        # The owner's own sessions are as private.
        own = await here.client.open()
        (await anna.ask("GET", f"/api/sessions/{own}")).problem(404, "not_found")


async def test_wrong_names_and_passwords_are_refused_alike(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        await in_thread(Users(here.home).add, "anna", PASSWORD)
        refused = [
            await here.browser().ask("POST", "/api/login", json=body)
            for body in (
                {"name": "anna", "password": "wrong password"},
                {"name": "nobody", "password": PASSWORD},
                {"name": "../anna", "password": PASSWORD},
                {"password": PASSWORD},
            )
        ]
        details = {answer.problem(401, "wrong_login")["detail"] for answer in refused}
        assert len(details) == 1


async def test_disabling_and_a_new_password_end_logins_streams_and_tokens(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        program = await here.user("anna")
        page = await signed_in(here, "anna")
        session_id = await page.open()
        changed = {"password": "another horse"}
        answer = await here.client.ask("PATCH", "/api/users/anna", json=changed)
        assert answer.status == 200, answer.raw
        (await page.ask("GET", "/api/me")).problem(401, "not_logged_in")
        assert (await program.ask("GET", "/api/me")).status == 200
        page = await signed_in(here, "anna", "another horse")
        assert (await page.get(f"/api/sessions/{session_id}"))["seq"] == 1
        assert (await here.client.ask("PATCH", "/api/users/anna", json={"disabled": True})).body[
            "disabled"
        ] is True
        for client in (program, page):
            (await client.ask("GET", "/api/me")).problem(401, "not_logged_in")


async def test_only_the_owner_administers(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        anna = await here.user("anna")
        for method, path in (
            ("GET", "/api/users"),
            ("POST", "/api/users"),
            ("DELETE", "/api/users/anna"),
            ("GET", "/api/trust"),
            ("POST", "/api/setup"),
            ("GET", "/api/setup/servers"),
            ("GET", "/api/not/there/yet"),
        ):
            (await anna.ask(method, path, json={})).problem(403, "only_for_the_owner")
        new = {"name": "ben", "password": PASSWORD}
        assert (await here.client.ask("POST", "/api/users", json=new)).status == 201
        (await here.client.ask("POST", "/api/users", json=new)).problem(422, "refused")
        names = [user["name"] for user in (await here.client.get("/api/users"))["users"]]
        assert names == ["anna", "ben"]
        assert (await here.client.ask("DELETE", "/api/users/ben")).status == 204
        assert not (here.home / "users" / "ben").exists()


async def test_a_user_stays_in_the_own_folder(tmp_path: Path) -> None:
    secret = tmp_path / "workspace" / "diary.txt"

    def reply(text: str) -> ScriptedReply:
        if not text.startswith("read"):
            return echo(text)
        return ScriptedReply(calls=(ScriptedCall("read_file", {"path": str(secret)}),))

    async with served_host(tmp_path, model=scripted(reply)) as here:
        secret.write_text(MARK)
        anna, ben = await here.user("anna"), await here.user("ben")
        folder = {user["name"]: user["folder"] for user in await users_of(here)}
        for outside in ("/", str(here.workspace), folder["ben"], "..", f"{folder['anna']}/../ben"):
            answer = await anna.ask("POST", "/api/sessions", json={"workspace": outside})
            answer.problem(422, "refused")
        link = Path(folder["anna"]) / "link"
        link.symlink_to(here.workspace)
        answer = await anna.ask("POST", "/api/sessions", json={"workspace": "link"})
        answer.problem(422, "refused")
        # No answer leads out of the folder: such a call is not even asked about.
        session_id = await ben.open(approvals="ask")
        sent = await ben.say(session_id, "read the diary")
        events = await ben.until(session_id, "call.finished")
        assert events[-1].data["outcome"] == "denied"
        assert folder["ben"] in json.dumps(events[-1].data)
        assert not any(event.type == "approval.asked" for event in events)
        assert MARK not in str([event.data for event in events])
        await ben.finished(session_id, sent["turn_id"])


async def users_of(here: ServedHost) -> list[dict[str, Any]]:
    users: list[dict[str, Any]] = (await here.client.get("/api/users"))["users"]
    return users


async def test_limits_hold_for_one_user_alone(tmp_path: Path) -> None:
    def counted(text: str) -> ScriptedReply:
        return ScriptedReply(text=text, usage=Usage(input_tokens=2, output_tokens=1))

    async with served_host(tmp_path, model=scripted(counted)) as here:
        anna, ben = await here.user("anna"), await here.user("ben")
        changed = {"tokens_per_day": 1}
        await here.client.ask("PATCH", "/api/users/anna", json=changed)

        async def turn(client: Client) -> dict[str, Any]:
            session_id = await client.open()
            sent = await client.say(session_id, "hello")
            return await client.finished(session_id, sent["turn_id"])

        await turn(anna)  # it passes the limit
        ended = await turn(anna)
        assert (ended["outcome"], ended["error"]["kind"]) == ("failed", "limit")
        assert (await turn(ben))["outcome"] == "completed"
        used = {user["name"]: user["tokens_today"] for user in await users_of(here)}
        assert used["anna"] > 0
        assert used["ben"] > 0


async def test_an_unfinished_turn_of_a_user_continues_when_the_server_starts(
    tmp_path: Path,
) -> None:
    gate = Gate()

    def stalling(text: str) -> ScriptedReply:
        return ScriptedReply(text=f"You said: {text}", hold=gate.wait)

    async with served_host(tmp_path, model=scripted(stalling)) as here:
        anna = await here.user("anna")
        session_id = await anna.open()
        sent = await anna.say(session_id, "hello")
        async with asyncio.timeout(PATIENCE):
            await gate.reached.wait()
    async with served_host(tmp_path) as here:
        anna = await signed_in(here, "anna")
        ended = await anna.finished(session_id, sent["turn_id"])
        assert ended["outcome"] == "completed"


# -- every route, tried by another user


async def enter(stack: AsyncExitStack, path: Path) -> ServedHost:
    return await stack.enter_async_context(served_host(path))


class Belongings:
    """What Anna has, by the names that the parameters of paths have."""

    def __init__(self, loop: LoopThread, here: ServedHost) -> None:
        self._loop, self._here = loop, here
        self.anna = loop.call(here.user, "anna")
        self.ben = loop.call(here.user, "ben")
        self.names: dict[str, str] = loop.call(self._fill)

    async def _fill(self) -> dict[str, str]:
        anna = self.anna
        upload = await anna.ask(
            "POST", f"/api/uploads?name={MARK}.txt", data=MARK.encode(), headers=PLAIN
        )
        assert upload.status == 201, upload.raw
        session_id = await anna.open()
        sent = await anna.say(
            session_id, f"the {MARK}", attachments=[{"upload_id": upload.body["upload_id"]}]
        )
        await anna.finished(session_id, sent["turn_id"])
        call = await anna.post(
            f"/api/sessions/{session_id}/calls",
            {"tool": "write_file", "arguments": {"path": f"{MARK}.md", "content": MARK}},
            status=202,
        )
        await anna.until(session_id, "call.finished")
        changed = {"tags": [MARK]}
        answer = await anna.ask("PATCH", f"/api/sessions/{session_id}", json=changed)
        assert answer.status == 200, answer.raw
        shared = await anna.post(f"/api/sessions/{session_id}/shares", {}, status=201)
        return {
            "session_id": session_id,
            "message_id": sent["message_id"],
            "turn_id": sent["turn_id"],
            "call_id": call["call_id"],
            "hash": upload.body["upload_id"],
            "blob_hash": upload.body["upload_id"],
            "share_id": shared["share"]["share_id"],
            "name": "anna",
        }

    def seq(self) -> int:
        view = self._loop.call(self.anna.get, f"/api/sessions/{self.names['session_id']}")
        seq: int = view["seq"]
        return seq


PLAIN = {"Content-Type": "text/plain"}
OWN_TEXT = ("/api/models", "/api/tools", "/api/openapi.json")


@pytest.fixture
def belongings(tmp_path: Path) -> Iterator[tuple[ServedHost, Belongings]]:
    with LoopThread() as loop:
        stack = AsyncExitStack()
        try:
            here = loop.call(enter, stack, tmp_path)
            yield here, Belongings(loop, here)
        finally:
            loop.call(stack.aclose)


def tried_by_ben(belongings: Belongings, url: str, operation: Any) -> None:
    headers = dict(belongings.ben.http.headers)
    names, path = belongings.names, operation.path

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=SLOW,
    )
    @given(case=operation.as_strategy(), in_query=st.booleans())
    def try_it(case: Any, *, in_query: bool) -> None:
        parameters: dict[str, Any] = case.path_parameters or {}
        for name in parameters:
            parameters[name] = names.get(name, names["session_id"])
        query: dict[str, Any] = case.query or {}
        for name in {"session_id", "parent"} & {*query} if in_query else ():
            query[name] = names["session_id"]
        response = case.call(base_url=url, headers=headers, timeout=PATIENCE)
        case.validate_response(response, checks=[NO_SERVER_ERROR])
        if "{session_id}" in path:
            assert response.status_code in (400, 404, 422), (path, response.status_code)
        assert MARK not in response.text, (path, response.text)
        if response.status_code not in (400, 403, 404, 422):
            assert names["session_id"] not in response.text, (path, response.text)

    try_it()


def test_every_route_is_tried_by_another_user(
    belongings: tuple[ServedHost, Belongings],
) -> None:
    """From the OpenAPI document, so that a new route cannot be forgotten."""
    here, things = belongings
    before = things.seq()
    headers = {"Authorization": f"Bearer {here.token}"}
    url = here.client.url
    document: Any = schemathesis.openapi.from_url(
        f"{url}/api/openapi.json", headers=headers, timeout=PATIENCE
    )
    tried = 0
    for result in document.get_all_operations():
        operation = result.ok()
        if operation.path in ("/api/events", "/api/login", "/api/logout"):
            continue  # a stream that does not end; the next test reads it
        tried_by_ben(things, url, operation)
        tried += 1
    assert tried > 50
    assert things.seq() == before, "something of another user reached the session"


async def test_the_stream_of_all_changes_tells_only_ones_own(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        anna, ben = await here.user("anna"), await here.user("ben")
        async with ben.stream("/api/events?after=0") as events:
            hers = await anna.open()
            await anna.say(hers, "hello")
            his = await ben.open()
            async for event in events:
                assert event.data["session_id"] == his
                break


async def test_the_upload_of_another_user_cannot_be_attached(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        anna, ben = await here.user("anna"), await here.user("ben")
        upload = await anna.ask(
            "POST", f"/api/uploads?name={MARK}.txt", data=MARK.encode(), headers=PLAIN
        )
        session_id = await ben.open()
        body = {"text": "what is it?", "attachments": [{"upload_id": upload.body["upload_id"]}]}
        answer = await ben.ask("POST", f"/api/sessions/{session_id}/messages", json=body)
        if answer.status == 202:
            await ben.finished(session_id, answer.body["turn_id"])
        shown = await ben.get(f"/api/sessions/{session_id}/messages")
        assert MARK not in json.dumps(shown)
        blob = await ben.ask("GET", f"/api/sessions/{session_id}/blobs/{upload.body['upload_id']}")
        assert blob.status in (404, 422)
