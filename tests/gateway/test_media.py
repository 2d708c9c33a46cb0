"""Images and speech that tools make go to the chat; photos are described by a model that sees."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from keryx.gateway.talk.attached_files import LARGEST
from keryx.gateway.telegram.platform import LONGEST_TEXT
from keryx.testing.modelserver import Call, ReceivedRequest, Reply
from tests.gateway.chat_home import ANN, chatting
from tests.gateway.test_talking import PNG, tool_results
from tests.tools.media.media_server import KEY, serving


@pytest.mark.promise("chat.4")
@pytest.mark.parametrize(
    ("tool", "arguments", "kind", "beginning"),
    [
        ("image_generate", {"prompt": "A herald"}, "photo", "\x89PNG"),
        ("text_to_speech", {"text": "Hear!"}, "audio", "ID3"),
        ("text_to_speech", {"text": "Hear!", "path": "hear.opus"}, "voice", "OggS"),
    ],
)
async def test_what_a_tool_for_media_makes_follows_the_answer(
    tmp_path: Path, tool: str, arguments: dict[str, Any], kind: str, beginning: str
) -> None:
    def answer(request: ReceivedRequest) -> Reply:
        if tool_results(request):
            return Reply(text="Here it is.")
        return Reply(calls=(Call(tool, arguments),))

    async with serving() as media:
        extra = (
            f'[providers.media]\nbase_url = "{media.url}"\napi_key = "{KEY}"\n'
            '[models.auxiliary]\nimage = "media:image-1"\nspeech = "media:speech-1"'
        )
        async with chatting(tmp_path, answer, extra=extra) as (api, _, _):
            api.say(ANN, "Make it")
            await api.wait(lambda: len(api.sent(ANN)) == 2)
            await api.wait(lambda: api.texts(ANN)[0] == "Here it is.")
            file = api.sent(ANN)[1]
            assert file.kind == kind
            assert (file.file or b"").startswith(beginning.encode("latin-1"))


@pytest.mark.promise("002.1", "chat.4")
async def test_a_photo_is_described_by_vision_analyze_if_the_model_does_not_see(
    tmp_path: Path,
) -> None:
    """A tool that asks another model, called from the gateway."""

    def answer(request: ReceivedRequest) -> Reply:
        if request.body["model"] == "other-model":
            images = re.findall(r"data:image/", request.raw.decode())
            return Reply(text=f"a heron in {len(images)} image")
        if results := tool_results(request):
            return Reply(text=f"I see {results[-1]}")
        assert "data:image/" not in request.raw.decode()
        (path,) = re.findall(r"\[attached: ([^\]]+)\]", request.raw.decode())
        return Reply(calls=(Call("vision_analyze", {"image": path}),))

    extra = '[models.auxiliary]\nvision = "openai:other-model"'
    async with chatting(tmp_path, answer, extra=extra, images="other-model") as (api, _, _):
        api.files["p"] = PNG
        size = {"width": 1, "height": 1, "file_size": len(PNG)}
        photo = [{"file_id": "p", "file_unique_id": "p", **size}]
        api.say(ANN, "", photo=photo, caption="What is this?")
        await api.wait(lambda: any("I see" in text for text in api.texts(ANN)))
        assert "a heron in 1 image" in api.texts(ANN)[-1]


@pytest.mark.promise("chat.4")
async def test_an_answer_names_the_files_that_are_not_sent(tmp_path: Path) -> None:
    names = [f"f{number}.txt" for number in range(12)]
    links = ["huge.bin", "f0.txt#line-3", *names, "./f1.txt", "nothere.pdf", "../home/config.toml"]
    addresses = [
        "https://example.com/a",
        "mailto:a@example.com",
        "tel:112",
        "#top",
        "//a.b/c",
        "?q",
    ]
    text = " ".join(f"[x]({link})" for link in [*links, *addresses])
    line = (
        "Not sent: huge.bin (larger than 50 MB); f10.txt, f11.txt (an answer has 10 files at most);"
        " nothere.pdf, ../home/config.toml (there is no such file in the workspace)."
    )
    async with chatting(tmp_path, lambda _: Reply(text=text)) as (api, _, _):
        for name in names:
            (tmp_path / "workspace" / name).write_text(name)
        with (tmp_path / "workspace" / "huge.bin").open("wb") as file:
            file.truncate(LARGEST + 1)
        api.say(ANN, "Send them")
        await api.wait(lambda: len({sent.file for sent in api.sent(ANN) if sent.file}) == 10)
        files = {sent.file for sent in api.sent(ANN) if sent.file}
        assert files == {name.encode() for name in names[:10]}
        (shown,) = [text for text in api.texts(ANN) if "Not sent" in text]
        assert shown.endswith(f"\n\n{line}")


@pytest.mark.promise("chat.4")
async def test_a_long_answer_names_them_in_a_message_of_its_own(tmp_path: Path) -> None:
    text = f"[x](nothere.pdf) {'a' * (LONGEST_TEXT - 50)}"
    async with chatting(tmp_path, lambda _: Reply(text=text)) as (api, _, _):
        api.say(ANN, "Send it")
        line = "Not sent: nothere.pdf (there is no such file in the workspace)."
        await api.wait(lambda: line in api.texts(ANN))


@pytest.mark.promise("chat.4")
async def test_an_answer_without_files_says_nothing_of_them(tmp_path: Path) -> None:
    text = "See https://example.com/a.html"
    async with chatting(tmp_path, lambda _: Reply(text=text)) as (api, _, _):
        api.say(ANN, "Where?")
        await api.wait(lambda: text in api.texts(ANN))
        api.say(ANN, "/status")
        await api.wait(lambda: any("Nothing is running." in shown for shown in api.texts(ANN)))
        assert not any("Not sent" in shown for shown in api.texts(ANN))
