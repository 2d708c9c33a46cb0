"""Files, blobs and uploads over HTTP: confined, bounded, and never more than bytes to a browser."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import aiohttp
import pytest

from keryx.models.scripted import ScriptedCall, ScriptedReply
from tests.server.served_host import scripted, served_host

SCRIPT = "<script>alert(1)</script>"


async def test_the_workspace_is_shown_folder_by_folder(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        (here.workspace / "sub").mkdir()
        (here.workspace / "sub" / "a.txt").write_text("grüße")
        (here.workspace / "b.bin").write_bytes(b"\0\1\2" * 100)
        name = await here.client.open()
        path = f"/api/sessions/{name}/files"
        shown = await here.client.get(path)
        assert (shown["kind"], shown["path"]) == ("folder", ".")
        assert [(entry["name"], entry["kind"], entry["size"]) for entry in shown["entries"]] == [
            ("sub", "folder", None),
            ("b.bin", "file", 300),
        ]
        text = await here.client.get(f"{path}?path=sub/a.txt")
        assert (text["kind"], text["text"], text["truncated"]) == ("file", "grüße", False)
        assert text["media_type"] == "text/plain"
        binary = await here.client.get(f"{path}?path=b.bin")
        assert (binary["text"], binary["size"]) == (None, 300)
        (await here.client.ask("GET", f"{path}?path=nothing")).problem(404, "not_found")


async def test_a_large_file_is_shown_in_part(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        (here.workspace / "long.txt").write_text("é" * 2_000_000)
        name = await here.client.open()
        shown = await here.client.get(f"/api/sessions/{name}/files?path=long.txt")
        assert (shown["size"], shown["truncated"]) == (4_000_000, True)
        assert len(shown["text"]) <= 512 * 1024


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../secret.txt",
        "sub/../../secret.txt",
        "/etc/passwd",
        "link.txt",
        "folder/secret.txt",
        "~/.ssh/id_rsa",
        "$KERYX_UPLOADS/x",
        "nul\0byte",
        "x" * 4_000,
        "a/" * 2_000,
    ],
)
async def test_no_path_leads_out_of_the_workspace(tmp_path: Path, path: str) -> None:
    async with served_host(tmp_path) as here:
        (tmp_path / "secret.txt").write_text("a secret")
        (here.workspace / "link.txt").symlink_to(tmp_path / "secret.txt")
        (here.workspace / "folder").symlink_to(tmp_path)
        name = await here.client.open()
        answer = await here.client.ask("GET", f"/api/sessions/{name}/files?path={quote(path)}")
        assert answer.status in (403, 404)
        assert answer.headers["content-type"] == "application/problem+json"
        assert b"a secret" not in answer.raw
        assert str(tmp_path).encode() not in answer.raw


async def test_the_home_of_the_host_is_hidden_also_inside_a_workspace(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        name = await here.client.open(workspace=str(tmp_path))
        path = f"/api/sessions/{name}/files?path="
        (await here.client.ask("GET", f"{path}home/tokens.json")).problem(403, "outside")
        (await here.client.ask("GET", f"{path}home")).problem(403, "outside")


async def test_names_and_contents_stay_text_whatever_they_hold(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        strange = here.workspace / SCRIPT.replace("/", "_")
        strange.write_text(SCRIPT)
        os.symlink("/nowhere", here.workspace / "link")  # noqa: PTH211 (as short as it gets)
        (here.workspace / os.fsdecode(b"not-\xff-utf8")).touch()
        name = await here.client.open()
        shown = await here.client.ask("GET", f"/api/sessions/{name}/files")
        assert shown.headers["content-type"] == "application/json"
        assert shown.headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in shown.headers["content-security-policy"]
        kinds = {entry["name"]: entry["kind"] for entry in shown.body["entries"]}
        assert kinds == {strange.name: "file", "link": "link", "not-\\xff-utf8": "file"}
        path = f"/api/sessions/{name}/files?path={quote(strange.name)}"
        assert (await here.client.get(path))["text"] == SCRIPT


@pytest.mark.promise("page20.2")
async def test_a_file_of_the_workspace_is_downloaded_whole_and_nothing_else_is(
    tmp_path: Path,
) -> None:
    async with served_host(tmp_path) as here:
        (here.workspace / "grüße.html").write_text(SCRIPT * 50_000)
        (tmp_path / "secret.txt").write_text("a secret")
        name = await here.client.open()
        path = f"/api/sessions/{name}/download?path="
        answer = await here.client.ask("GET", path + quote("grüße.html"))
        assert answer.raw == (SCRIPT * 50_000).encode()
        assert answer.headers["content-type"] == "application/octet-stream"
        disposition = f"attachment; filename*=UTF-8''{quote('grüße.html')}"
        assert answer.headers["content-disposition"] == disposition
        assert "sandbox" in answer.headers["content-security-policy"]
        (await here.client.ask("GET", f"{path}../secret.txt")).problem(403, "outside")
        (await here.client.ask("GET", f"{path}none.txt")).problem(404, "not_found")


# -- blobs


async def test_a_blob_is_shown_only_by_a_session_that_names_it(tmp_path: Path) -> None:
    gif = b"GIF89a" + b"\0" * 40
    page = f"<!doctype html>{SCRIPT}".encode()
    async with served_host(tmp_path) as here:
        name = await here.client.open()
        uploads = [
            (await here.client.post(f"/api/uploads?name=x{number}", status=201, data=data))[
                "upload_id"
            ]
            for number, data in enumerate((gif, page))
        ]
        sent = await here.client.say(
            name, "Look", attachments=[{"upload_id": upload_id} for upload_id in uploads]
        )
        await here.client.finished(name, sent["turn_id"])
        picture, other = [
            await here.client.ask("GET", f"/api/sessions/{name}/blobs/{upload_id}")
            for upload_id in uploads
        ]
        assert (picture.raw, picture.headers["content-type"]) == (gif, "image/gif")
        assert picture.headers["content-disposition"] == "inline"
        assert (other.raw, other.headers["content-type"]) == (page, "application/octet-stream")
        assert other.headers["content-disposition"].startswith("attachment")
        for answer in (picture, other):
            assert "sandbox" in answer.headers["content-security-policy"]
            assert answer.headers["x-content-type-options"] == "nosniff"
        stranger = await here.client.open()
        path = f"/api/sessions/{stranger}/blobs/{uploads[0]}"
        (await here.client.ask("GET", path)).problem(404, "not_found")
        bad = await here.client.ask("GET", f"/api/sessions/{name}/blobs/{'Z' * 64}")
        bad.problem(400, "bad_request")


# -- uploads


async def test_an_upload_past_the_limit_is_refused_and_not_read(tmp_path: Path) -> None:
    async with served_host(tmp_path, upload_limit=100_000) as here:
        fits = await here.client.ask("POST", "/api/uploads?name=a", data=b"x" * 100_000)
        assert (fits.status, fits.body["size"]) == (201, 100_000)
        declared = await here.client.ask("POST", "/api/uploads?name=a", data=b"x" * 100_001)
        declared.problem(413, "too_large")

        async def endless() -> AsyncIterator[bytes]:
            for _ in range(10_000):
                yield b"x" * 10_000

        with contextlib.suppress(aiohttp.ClientError):  # it is cut off, with the answer or before
            undeclared = await here.client.ask("POST", "/api/uploads?name=a", data=endless())
            undeclared.problem(413, "too_large")
        assert len(list((here.home / "uploads").iterdir())) == 1
        (await here.client.ask("POST", "/api/uploads?name=a", data=b"")).problem(422, "refused")


@pytest.mark.parametrize(
    ("sent_name", "stored_name"),
    [
        ("plain.txt", "plain.txt"),
        ("../../etc/passwd", "_.._etc_passwd"),
        ("..\\..\\x", "_.._x"),
        ("a\nb\0c.txt", "a_b_c.txt"),
        ("exe\u202egpj.txt", "exe_gpj.txt"),
        (SCRIPT, "<script>alert(1)<_script>"),
        ("x" * 500 + ".txt", "x" * 196 + ".txt"),
        ("...", ""),
    ],
)
async def test_names_of_uploads_are_only_names(
    tmp_path: Path, sent_name: str, stored_name: str
) -> None:
    async with served_host(tmp_path) as here:
        headers = {"Content-Type": "text/html; charset=<script>"}
        path = f"/api/uploads?name={quote(sent_name)}"
        answer = await here.client.ask("POST", path, data=b"x", headers=headers)
        assert answer.status == 201
        assert (answer.body["name"], answer.body["media_type"]) == (stored_name, "text/html")
        assert answer.headers["content-type"] == "application/json"
        longer = await here.client.ask("POST", f"/api/uploads?name={'x' * 1001}", data=b"x")
        longer.problem(400, "bad_request")


async def test_script_in_what_tools_print_stays_json(tmp_path: Path) -> None:
    def reply(text: str) -> ScriptedReply:
        call = ScriptedCall("read_file", {"path": "page.html"})
        return ScriptedReply(calls=[call]) if text else ScriptedReply(text=SCRIPT)

    async with served_host(tmp_path, model=scripted(reply)) as here:
        (here.workspace / "page.html").write_text(SCRIPT)
        name = await here.client.open(title=SCRIPT)
        sent = await here.client.say(name, SCRIPT)
        await here.client.finished(name, sent["turn_id"])
        for path in ("", "/messages", "/export"):
            shown = await here.client.ask("GET", f"/api/sessions/{name}{path}")
            assert shown.headers["content-type"].startswith("application/")
            assert shown.headers["x-content-type-options"] == "nosniff"
            assert shown.headers["content-security-policy"].startswith("default-src 'none'")


async def test_a_picture_of_the_workspace_is_shown_and_nothing_else_is(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        name = await here.client.open()
        png = b"\x89PNG\r\n\x1a\n" + b"\0" * 100
        (here.workspace / "cat.png").write_bytes(png)
        (here.workspace / "page.png").write_text("<script>alert(1)</script>")
        path = f"/api/sessions/{name}/pictures?path="
        shown = await here.client.ask("GET", f"{path}cat.png")
        assert (shown.status, shown.raw, shown.headers["content-type"]) == (200, png, "image/png")
        for other, status in (("page.png", 404), ("../x.png", 403), (".", 404), ("none", 404)):
            assert (await here.client.ask("GET", path + other)).status == status, other
