"""Sessions as people keep them, over HTTP: tags, copies, files and links, with wrong input too."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from keryx.models.scripted import ScriptedCall, ScriptedReply
from keryx.server.sharing.share_links import MOST_LINKS, ShareRecord, create_link
from tests.app.portable.test_round_trip import PNG
from tests.cli.commands import keryx
from tests.server.served_host import (
    Answer,
    Client,
    ServedHost,
    echo,
    in_thread,
    scripted,
    served_host,
)
from tests.server.server_process import served

RAW = {"Content-Type": "application/octet-stream"}


async def spoken(client: Client, text: str, **body: Any) -> str:
    """A session in which this was said and answered."""
    session_id = await client.open()
    sent = await client.say(session_id, text, **body)
    await client.finished(session_id, sent["turn_id"])
    return session_id


async def change(client: Client, session_id: str, **changes: Any) -> Answer:
    return await client.ask("PATCH", f"/api/sessions/{session_id}", json=changes)


async def imported(client: Client, data: bytes | str, query: str = "") -> Answer:
    raw = data.encode() if isinstance(data, str) else data
    return await client.ask("POST", f"/api/sessions/import{query}", data=raw, headers=RAW)


# -- tags


@pytest.mark.promise("page20.18")
async def test_tags_are_changed_listed_and_counted(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        client = here.client
        one, two, three = [await client.open(title=title) for title in ("one", "two", "three")]
        body = (await change(client, one, tags=[" Work ", "tea", "WORK"])).body
        assert body["summary"]["tags"] == body["settings"]["tags"] == ["tea", "Work"]
        await change(client, two, tags=["work"])
        await change(client, three, tags=["tea"], archived=True)
        listed = (await client.get("/api/sessions?tag=wOrK"))["sessions"]
        assert [row["title"] for row in listed] == ["two", "one"]
        assert (await client.get("/api/sessions?tag=none"))["sessions"] == []
        archived = (await client.get("/api/sessions?tag=TEA&archived=true"))["sessions"]
        assert [row["title"] for row in archived] == ["three"]
        assert (await client.get("/api/tags"))["tags"] == [
            {"name": "tea", "sessions": 1, "archived": 1},
            {"name": "Work", "sessions": 2, "archived": 0},
        ]
        assert (await change(client, one, title="renamed")).body["summary"]["tags"]
        assert (await change(client, one, tags=[])).body["summary"]["tags"] == []
        for wrong in (["x" * 41], [""], ["  "], [f"t{n}" for n in range(21)], ["a\0b"]):
            answer = await change(client, two, tags=wrong)
            assert answer.status in (400, 422), answer.raw
            assert answer.body["detail"]
        for wrong in ("work", [1], None, {"a": 1}):
            (await change(client, two, tags=wrong)).problem(400, "bad_request")
        assert (await client.get(f"/api/sessions/{two}"))["summary"]["tags"] == ["work"]


@pytest.mark.promise("page20.18")
async def test_a_copy_gets_its_title_and_keeps_the_tags(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        session_id = await spoken(here.client, "hello")
        await change(here.client, session_id, title="Tea", tags=["Work"])
        copy = await here.client.post(
            f"/api/sessions/{session_id}/fork", {"title": "Tea (copy)"}, status=201
        )
        assert copy["summary"]["title"] == "Tea (copy)"
        assert copy["summary"]["tags"] == ["Work"]
        assert copy["summary"]["session_id"] != session_id


# -- files


@pytest.mark.promise("page20.18")
async def test_one_session_is_exported_in_each_format(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        session_id = await spoken(here.client, "a <b>bold</b> word")
        await change(here.client, session_id, title='A "tea" / über')
        path = f"/api/sessions/{session_id}/export"
        lines = await here.client.ask("GET", path)
        assert json.loads(lines.raw.splitlines()[0])["type"] == "session.opened"
        for name, start in (("json", b'{"format"'), ("markdown", b"# A"), ("html", b"<!doctype")):
            answer = await here.client.ask("GET", f"{path}?format={name}")
            assert answer.status == 200
            assert answer.raw.startswith(start)
            assert "attachment" in answer.headers["content-disposition"]
            assert "%C3%BC" in answer.headers["content-disposition"]
            assert "sandbox" in answer.headers["content-security-policy"]
            assert b"<b>" not in answer.raw or name != "html"
        (await here.client.ask("GET", f"{path}?format=docx")).problem(400, "bad_request")
        (await here.client.ask("GET", "/api/sessions/none/export?format=json")).problem(
            404, "not_found"
        )


@pytest.mark.promise("page20.18")
async def test_several_sessions_are_exported_as_one_file_that_can_be_imported(
    tmp_path: Path,
) -> None:
    async with served_host(tmp_path) as here:
        names = [await spoken(here.client, f"number {number}") for number in range(3)]
        for name in names:
            await change(here.client, name, title="Same")
        query = "&".join(f"session_id={name}" for name in names)
        archive = await here.client.ask("GET", f"/api/exports?{query}&format=markdown")
        with zipfile.ZipFile(io.BytesIO(archive.raw)) as opened:
            assert opened.testzip() is None
            texts = [opened.read(name).decode() for name in opened.namelist()]
        assert sorted(f"number {n}" in text for n, text in enumerate(texts)) == [True] * 3
        to_read = (await imported(here.client, archive.raw)).problem(422, "refused")
        assert "export the sessions as JSON" in to_read["hint"]
        for format_ in ("json", "jsonl"):
            export = await here.client.ask("GET", f"/api/exports?{query}&format={format_}")
            for name in names:
                await here.client.ask("DELETE", f"/api/sessions/{name}")
            answer = await imported(here.client, export.raw)
            assert answer.status == 201, answer.raw
            assert [row["session_id"] for row in answer.body["sessions"]] == names
        (await here.client.ask("GET", f"/api/exports?{query}&session_id=no")).problem(
            404, "not_found"
        )
        assert (await here.client.ask("GET", "/api/exports")).status == 400
        many = "&".join(f"session_id={names[0]}" for _ in range(201))
        (await here.client.ask("GET", f"/api/exports?{many}")).problem(422, "refused")


@pytest.mark.promise("page20.18")
async def test_files_of_other_programs_are_imported_and_told_to_the_list(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        messages = [{"role": "user", "content": "Tea?"}, {"role": "assistant", "content": "Yes."}]
        async with here.client.stream("/api/events?after=0") as events:
            answer = await imported(here.client, json.dumps(messages), "?name=chat.json")
            async for event in events:
                assert event.data["session_id"] == answer.body["sessions"][0]["session_id"]
                break
        (row,) = answer.body["sessions"]
        assert row["workspace"] == str(here.workspace)
        sent = await here.client.say(row["session_id"], "and now?")
        assert (await here.client.finished(row["session_id"], sent["turn_id"]))["outcome"]


def archived(content: bytes) -> bytes:
    """An archive with one file."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("one.json", content)
    return sink.getvalue()


@pytest.mark.promise("page20.18")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not json",
        b"\xff\xfe\x00",
        b"{}",
        b"[1, 2]",
        b'{"format": "keryx.session", "version": 99, "session_id": "s", "events": []}',
        b'{"format": "keryx.session", "version": 1, "session_id": "s", "events": []}',
        b"[" * 100_000,
        b"SQLite format 3\0",
        b"PK\x03\x04",
        archived(b"{}"),
        archived(archived(b"{}")),
        archived(b"[" * 100_000),
        archived(bytes(300 * 1024 * 1024)),
    ],
)
async def test_what_is_no_session_is_refused_with_what_it_must_be(
    tmp_path: Path, data: bytes
) -> None:
    async with served_host(tmp_path) as here:
        answer = await imported(here.client, data, "?name=x.json")
        assert "x.json" in answer.problem(422, "refused")["detail"]
        assert (await here.client.get("/api/sessions"))["sessions"] == []
        (await imported(here.client, b"[]", "?workspace=not/there")).problem(422, "refused")


@pytest.mark.promise("page20.18")
async def test_an_imported_session_allows_and_reverts_nothing_by_itself(tmp_path: Path) -> None:
    """A file that somebody else wrote names folders, tools, approvals and file changes."""

    def reply(text: str) -> ScriptedReply:
        if not text.startswith("write"):
            return echo(text)
        return ScriptedReply(
            calls=(ScriptedCall("write_file", {"path": "a.txt", "content": "here"}),)
        )

    async with served_host(tmp_path, model=scripted(reply)) as here:
        session_id = await spoken(here.client, "write")
        await change(here.client, session_id, approvals="never", tags=["x" * 30])
        exported = await here.client.ask("GET", f"/api/sessions/{session_id}/export?format=json")
        anna = await here.user("anna")
        answer = await imported(anna, exported.raw)
        assert answer.status == 201, answer.raw
        (row,) = answer.body["sessions"]
        assert "anna" in row["workspace"]
        view = await anna.get(f"/api/sessions/{row['session_id']}")
        assert view["settings"]["approvals"] is None
        assert view["settings"]["workspace"] == row["workspace"]
        assert view["usage"]["input_tokens"] == 0
        changes = await anna.get(f"/api/sessions/{row['session_id']}/changes")
        assert changes["changes"] == []
        turn = await anna.until(row["session_id"], "turn.finished")
        body = {"turn_id": turn[-1].data["turn_id"]}
        await anna.post(f"/api/sessions/{row['session_id']}/undo", body)
        assert (here.workspace / "a.txt").read_text() == "here"


# -- links


async def shared(client: Client, session_id: str, **body: Any) -> dict[str, Any]:
    share: dict[str, Any] = await client.post(
        f"/api/sessions/{session_id}/shares", body, status=201
    )
    return share


async def opened(here: ServedHost, path: str, method: str = "GET") -> Answer:
    return await here.browser().ask(method, path)


@pytest.mark.promise("page20.19")
async def test_a_link_shows_the_session_as_it_was_without_a_login(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        session_id = await spoken(here.client, "the first <script>alert(1)</script>")
        now = await shared(here.client, session_id)
        following = await shared(here.client, session_id, follow=True, days=None)
        sent = await here.client.say(session_id, "the second")
        await here.client.finished(session_id, sent["turn_id"])

        page = await opened(here, now["path"])
        assert page.status == 200
        assert b"the first" in page.raw
        assert b"the second" not in page.raw
        assert b'from">You' not in page.raw  # the reader is somebody else
        assert b"<script" not in page.raw
        assert b"the second" in (await opened(here, following["path"])).raw
        headers = page.headers
        assert headers["content-type"] == "text/html; charset=utf-8"
        assert headers["content-security-policy"].startswith("default-src 'none'; img-src data:")
        assert "unsafe" not in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "noindex" in headers["x-robots-tag"]
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert (await opened(here, now["path"], "HEAD")).raw == b""
        assert (await opened(here, now["path"], "POST")).status == 405
        # The secret opens nothing else, and is stored nowhere.
        secret = now["path"].rpartition("/")[2]
        assert (await opened(here, f"/api/sessions/{session_id}")).status == 401
        for file in here.home.rglob("*"):
            assert not file.is_file() or secret.encode() not in file.read_bytes(), file
        listed = await here.client.get(f"/api/sessions/{session_id}/shares")
        assert secret not in json.dumps(listed)
        assert [share["up_to"] for share in listed["shares"]] == [None, now["share"]["up_to"]]
        assert await here.client.get("/api/shares") == listed


@pytest.mark.promise("page20.19")
async def test_links_are_made_listed_and_revoked_by_command(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        session_id = await spoken(here.client, "by command")

        async def command(*words: str) -> tuple[int, str, str]:
            done = await in_thread(keryx, here.home, "sessions", *words)
            return done.returncode, done.stdout, done.stderr

        status, path, hint = await command("share", session_id, "--days", "1")
        assert (status, "--url" in hint) == (0, True)
        assert b"by command" in (await opened(here, path.strip())).raw
        _, whole, _ = await command("share", session_id, "--forever", "--url", "https://k.example/")
        assert whole.startswith("https://k.example/share/0/")
        # What a command made and what the page made are the same links.
        shares = (await here.client.get("/api/shares"))["shares"]
        assert [share["expires_at"] is None for share in shares] == [True, False]
        _, listed, _ = await command("links")
        assert (await command("links", session_id))[1] == listed
        assert [line.split()[1] for line in listed.splitlines()] == [session_id] * 2
        status, _, error = await command("unshare", session_id, "0" * 12)
        assert (status, "has no link" in error) == (1, True)
        assert (await command("unshare", session_id, listed.splitlines()[1].split()[0]))[0] == 0
        assert (await opened(here, path.strip())).status == 404
        assert (await command("unshare", session_id, "all"))[0] == 0
        assert (await command("links"))[1] == ""
        assert (await command("share", "s_none"))[0] == 1


@pytest.mark.promise("page20.19")
async def test_a_link_that_is_over_is_as_one_that_never_was(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        session_id = await spoken(here.client, "hello")
        revoked, deleted = [await shared(here.client, session_id, days=days) for days in (7, 30)]
        record = ShareRecord(
            session_id=session_id,
            by="ann",
            created_at=1.0,
            expires_at=2.0,
            up_to=1,
            attachments=False,
        )
        expired = await create_link(here.host_client, "", record)
        path = f"/api/sessions/{session_id}/shares/{revoked['share']['share_id']}"
        assert (await here.client.ask("DELETE", path)).status == 204
        (await here.client.ask("DELETE", path)).problem(404, "not_found")
        listed = (await here.client.get(f"/api/sessions/{session_id}/shares"))["shares"]
        assert [share["share_id"] for share in listed] == [deleted["share"]["share_id"]]
        assert (await opened(here, deleted["path"])).status == 200

        answers = [await opened(here, revoked["path"]), await opened(here, expired.path)]
        await here.client.ask("DELETE", f"/api/sessions/{session_id}")
        answers.append(await opened(here, deleted["path"]))
        await here.client.open(session_id=session_id)
        answers.append(await opened(here, deleted["path"]))  # the next session is another one
        answers.append(await opened(here, f"/share/0/{session_id}/{'x' * 43}"))
        assert {answer.status for answer in answers} == {404}
        assert len({answer.raw for answer in answers}) == 1
        limited = await opened(here, "/share/0/a/b")
        assert (limited.status, limited.headers["retry-after"]) == (429, "1")


@pytest.mark.promise("page20.19")
@pytest.mark.parametrize(
    "body",
    [{"days": 2}, {"days": "never"}, {"follow": "yes"}, {"attachments": "some"}, [], "link"],
)
async def test_a_wrong_request_for_a_link_is_refused(tmp_path: Path, body: Any) -> None:
    async with served_host(tmp_path) as here:
        session_id = await here.client.open()
        path = f"/api/sessions/{session_id}/shares"
        (await here.client.ask("POST", path, json=body)).problem(400, "bad_request")
        assert (await here.client.get(path))["shares"] == []
        answer = await here.client.ask("POST", "/api/sessions/none/shares", json={})
        answer.problem(404, "not_found")
        (await here.client.ask("DELETE", f"{path}/{'0' * 64}")).problem(404, "not_found")


@pytest.mark.promise("page20.19")
async def test_a_session_has_a_bounded_number_of_links(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        session_id = await here.client.open()
        for _ in range(MOST_LINKS):
            await shared(here.client, session_id)
        path = f"/api/sessions/{session_id}/shares"
        (await here.client.ask("POST", path, json={})).problem(409, "conflict")


@pytest.mark.promise("page20.19")
async def test_pictures_are_shown_only_if_they_were_chosen(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        headers = {"Content-Type": "image/png"}
        upload = await here.client.ask("POST", "/api/uploads?name=i.png", data=PNG, headers=headers)
        attached = [{"upload_id": upload.body["upload_id"]}]
        session_id = await spoken(here.client, "look", attachments=attached)
        without, with_them = [
            await shared(here.client, session_id, attachments=chosen) for chosen in (False, True)
        ]
        assert b"data:image/png" not in (await opened(here, without["path"])).raw
        assert b"i.png" in (await opened(here, without["path"])).raw
        assert b"data:image/png" in (await opened(here, with_them["path"])).raw


@pytest.mark.promise("page20.19")
async def test_a_link_finds_the_home_of_its_user(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        anna, ben = await here.user("anna"), await here.user("ben")
        for client, word in ((here.client, "heron"), (anna, "cormorant"), (ben, "puffin")):
            await client.open(session_id="s-same")
            sent = await client.say("s-same", f"the {word}")
            await client.finished("s-same", sent["turn_id"])
        hers = await shared(anna, "s-same")
        assert "anna" not in hers["path"]
        page = (await opened(here, hers["path"])).raw
        assert b"cormorant" in page
        assert b"puffin" not in page
        for other in (ben, here.client):
            assert (await other.get("/api/shares"))["shares"] == []
            path = f"/api/sessions/s-same/shares/{hers['share']['share_id']}"
            (await other.ask("DELETE", path)).problem(404, "not_found")
        # Her secret opens no other home, and her home no more when she is disabled.
        prefix, _, rest = hers["path"].removeprefix("/share/").partition("/")
        assert prefix != "0"
        assert (await opened(here, f"/share/0/{rest}")).status == 404
        await here.client.ask("PATCH", "/api/users/anna", json={"disabled": True})
        assert (await opened(here, hers["path"])).status == 404


@pytest.mark.promise("page20.19")
async def test_a_link_works_below_the_prefix_of_a_proxy(tmp_path: Path) -> None:
    async with served_host(tmp_path, trusted_proxies=("127.0.0.1",)) as here:
        session_id = await spoken(here.client, "hello")
        link = await shared(here.client, session_id)
        for number in range(8):
            # Each client is counted by itself: those who try in vain keep nobody else out.
            reader = here.browser(
                **{"X-Forwarded-Prefix": "/keryx", "X-Forwarded-For": f"192.0.2.{number}"}
            )
            answer = await reader.ask("GET", f"/keryx{link['path']}x")
            assert answer.status == 404
            answer = await reader.ask("GET", f"/keryx{link['path']}")
            assert answer.status == 200
            assert b"hello" in answer.raw


@pytest.mark.promise("page20.18", "page20.19")
async def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    """Tags, a copy, an import and a link: the server is killed right after each answer."""
    messages = json.dumps([{"role": "user", "content": "Tea?"}])
    async with served(tmp_path) as (client, process):
        await client.open(session_id="s-one")
        sent = await client.say("s-one", "hello")
        await client.finished("s-one", sent["turn_id"])
        await change(client, "s-one", tags=["Work"])
        process.kill()
    async with served(tmp_path) as (client, process):
        assert (await client.get("/api/sessions?tag=work"))["sessions"][0]["session_id"] == "s-one"
        answer = await imported(client, messages)
        process.kill()
    async with served(tmp_path) as (client, process):
        await client.get(f"/api/sessions/{answer.body['sessions'][0]['session_id']}")
        body = {"title": "copy", "session_id": "s-two"}
        await client.post("/api/sessions/s-one/fork", body, status=201)
        process.kill()
    async with served(tmp_path) as (client, process):
        assert (await client.get("/api/sessions/s-two"))["summary"]["title"] == "copy"
        link = await shared(client, "s-one")
        process.kill()
    async with served(tmp_path) as (client, process):
        assert b"hello" in (await client.ask("GET", link["path"])).raw
        path = f"/api/sessions/s-one/shares/{link['share']['share_id']}"
        assert (await client.ask("DELETE", path)).status == 204
        process.kill()
    async with served(tmp_path) as (client, _):
        assert (await client.ask("GET", link["path"])).status == 404
