"""Images and speech that tools make go to the chat; photos are described by a model that sees."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

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
