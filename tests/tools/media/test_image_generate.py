"""`image_generate`: what is sent, what is saved, and what goes wrong."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from keryx.events import Usage
from tests.tools.hanging_tools import PICTURE
from tests.tools.media.media_server import cut, endless, replying, serving, with_images
from tests.tools.media.media_session import MediaHome

pytestmark = pytest.mark.promise("kit.3")

JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00"


async def test_an_image_is_saved_shown_and_its_usage_logged(tmp_path: Path) -> None:
    async with serving() as server:
        home = MediaHome(tmp_path, server)
        ended = await home.call("image_generate", prompt="A herald", size="1024x1024")
    (received,) = server.received
    assert received.fields == {
        "model": "image-1",
        "prompt": "A herald",
        "n": 1,
        "size": "1024x1024",
    }
    assert home.files() == {"images/image-1.png": PICTURE}
    (image,) = ended.images
    assert (image.media_type, image.name) == ("image/png", "image-1.png")
    assert ended.texts == [f"[saved as images/image-1.png, {len(PICTURE)} bytes]"]
    (spent,) = ended.usage
    assert (spent.purpose, spent.model, spent.cost) == ("image", "here:image-1", None)
    assert spent.usage == Usage(input_tokens=12, output_tokens=272)
    assert spent.call_id == ended.event.call_id


async def test_a_script_gets_fields_and_calls_at_once_get_names_of_their_own(
    tmp_path: Path,
) -> None:
    async with serving() as server:
        home = MediaHome(tmp_path, server)
        result = await home.script(
            "from keryx_tools import finish, image_generate, parallel\n"
            "both = parallel(image_generate, ['one', 'two', 'three'])\n"
            "finish([image for result in both for image in result['images']])\n"
        )
    names = {f"images/image-{number}.png" for number in (1, 2, 3)}
    assert {image["path"] for image in result} == names == set(home.files())
    assert {(image["size"], image["media_type"]) for image in result} == {
        (len(PICTURE), "image/png")
    }


async def test_several_images_with_a_name_are_numbered(tmp_path: Path) -> None:
    async with serving() as server:
        home = MediaHome(tmp_path, server)
        ended = await home.call("image_generate", prompt="A herald", n=2, path="art/cat.png")
    assert len(ended.images) == 2
    assert set(home.files()) == {"art/cat-1.png", "art/cat-2.png"}


async def test_the_name_ends_as_the_image_that_came(tmp_path: Path) -> None:
    async with serving() as server:
        server.answers.append(with_images({"b64_json": base64.b64encode(JPEG).decode()}))
        home = MediaHome(tmp_path, server)
        (home.workspace / "cat.jpg").write_bytes(b"another cat")
        ended = await home.call("image_generate", prompt="A cat", path="cat.png")
    assert "cat-2.jpg" in ended.texts[0]
    assert ended.usage == []
    assert home.files() == {"cat.jpg": b"another cat", "cat-2.jpg": JPEG}


async def test_an_address_of_the_same_server_is_fetched_without_the_key(tmp_path: Path) -> None:
    async with serving() as server:
        server.files["/made/1.png"] = replying(body=PICTURE, content_type="image/png")
        address = f"http://127.0.0.1:{server.port}/made/1.png"
        server.answers.append(with_images({"url": address}))
        home = MediaHome(tmp_path, server)
        ended = await home.call("image_generate", prompt="A herald")
    assert ended.outcome == "completed", ended.text
    assert home.files() == {"images/image-1.png": PICTURE}
    assert server.fetched == ["/made/1.png"]


@pytest.mark.parametrize("through", ["address", "redirect"])
async def test_another_private_address_is_not_contacted(tmp_path: Path, through: str) -> None:
    async with serving() as server, serving() as other:
        target = f"http://127.0.0.1:{other.port}/secret"
        if through == "redirect":
            server.files["/made"] = replying(status=302, headers={"Location": target})
            target = f"http://127.0.0.1:{server.port}/made"
        server.answers.append(with_images({"url": target}))
        home = MediaHome(tmp_path, server)
        ended = await home.call("image_generate", prompt="A herald")
        assert other.fetched == []
    assert ended.outcome == "failed"
    assert "is not a public address" in ended.text
    assert home.files() == {}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"prompt": " \n"}, "the prompt is empty"),
        ({"prompt": "x" * 32_001}, "make it shorter"),
        ({"prompt": "x", "size": "large"}, "such as 1024x1024"),
        ({"prompt": "x", "n": 5}, "n"),
        ({"prompt": "x", "n": 0}, "n"),
        ({"prompt": "x", "path": "a.exe"}, "ends in .png"),
        ({"prompt": "x", "path": "there.png"}, "choose another name"),
        ({"prompt": "x", "path": "folder"}, "choose another name"),
        ({"prompt": "x", "path": "a\0.png"}, "NUL"),
        ({"prompt": "x", "path": ""}, "the path is empty"),
        ({"prompt": "x", "path": "", "n": 2}, "the path is empty"),
    ],
)
async def test_a_bad_argument_is_a_clear_error_and_costs_nothing(
    tmp_path: Path, arguments: dict[str, Any], problem: str
) -> None:
    async with serving() as server:
        home = MediaHome(tmp_path, server)
        (home.workspace / "there.png").write_bytes(b"mine")
        (home.workspace / "folder").mkdir()
        ended = await home.call("image_generate", **arguments)
        assert server.received == []
    assert ended.outcome == "failed", ended.text
    assert problem in ended.text
    assert home.files() == {"there.png": b"mine"}


async def test_a_path_outside_the_workspace_needs_a_person(tmp_path: Path) -> None:
    async with serving() as server:
        home = MediaHome(tmp_path, server)
        ended = await home.call("image_generate", prompt="x", path=str(tmp_path / "a.png"))
        assert server.received == []
    assert ended.outcome == "denied"
    assert not (tmp_path / "a.png").exists()


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (replying(text="<html>Hello</html>", content_type="text/html"), "text/html"),
        (replying(text='{"images": []}'), "offers images/generations"),
        (replying(text='{"x": ' + "[" * 100_000), "offers images/generations"),
        (replying(text='{"data": []}'), "made no image"),
        (replying(text='{"data": [{}]}'), "without data and address"),
        (with_images({"b64_json": "not base64!"}), "not base64"),
        (with_images({"b64_json": "aGVsbG8="}), "not PNG, JPEG, WebP or GIF"),
        (with_images({"url": "file:///etc/passwd"}), "http:// or https://"),
        (with_images({"url": "http://169.254.169.254/"}), "not a public address"),
        (replying(status=400, text='{"error": {"message": "No such size"}}'), "No such size"),
        (endless, "sent more than"),
    ],
)
async def test_a_bad_answer_is_a_clear_error_and_no_file(
    tmp_path: Path, answer: Any, problem: str
) -> None:
    async with serving() as server:
        server.answers.append(answer)
        home = MediaHome(tmp_path, server)
        ended = await home.call("image_generate", prompt="A herald")
        assert len(server.received) == 1
    assert ended.outcome == "failed"
    assert problem in ended.text
    assert home.files() == {}


async def test_a_wrong_key_is_a_clear_error_that_does_not_show_it(tmp_path: Path) -> None:
    async with serving() as server:
        home = MediaHome(tmp_path, server, key="sk-another-key-entirely")
        ended = await home.call("image_generate", prompt="A herald")
    assert ended.outcome == "failed"
    assert "check the key for" in ended.text
    assert "sk-another-key-entirely" not in ended.text


async def test_temporary_failures_are_retried(tmp_path: Path) -> None:
    async with serving() as server:
        busy = {"retry-after-ms": "1"}
        server.answers += [
            replying(status=429, text="slow down", headers=busy),
            replying(status=503, text="overloaded", headers=busy),
            cut,
        ]
        home = MediaHome(tmp_path, server)
        ended = await home.call("image_generate", prompt="A herald")
        assert len(server.received) == 4
    assert ended.outcome == "completed", ended.text
    assert home.files() == {"images/image-1.png": PICTURE}


async def test_a_delay_that_is_too_long_is_an_error(tmp_path: Path) -> None:
    async with serving() as server:
        busy = replying(status=429, text="slow down", headers={"retry-after": "3600"})
        server.answers.append(busy)
        home = MediaHome(tmp_path, server)
        ended = await home.call("image_generate", prompt="A herald")
    assert ended.outcome == "failed"
    assert "another wait of 3600 s would be too long" in ended.text


async def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    async with serving() as server:
        home = MediaHome(tmp_path, server)

        async def answer(request: web.BaseRequest) -> web.StreamResponse:
            (home.workspace / "cat.png").write_bytes(b"mine")
            image = {"b64_json": base64.b64encode(PICTURE).decode()}
            return await with_images(image)(request)

        server.answers.append(answer)
        ended = await home.call("image_generate", prompt="A cat", path="cat.png")
    assert "cat-2.png" in ended.texts[0]
    assert home.files() == {"cat.png": b"mine", "cat-2.png": PICTURE}
