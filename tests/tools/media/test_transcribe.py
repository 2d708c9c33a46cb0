"""`transcribe`: what is sent, and what goes wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from keryx.events import Usage
from tests.tools.hanging_tools import PICTURE, SOUND
from tests.tools.media.media_server import TRANSCRIPT, endless, replying, serving
from tests.tools.media.media_session import MediaHome

pytestmark = pytest.mark.promise("kit.3")

LIMIT = 25 * 1024 * 1024


async def test_a_sound_goes_to_the_model_as_a_form(tmp_path: Path) -> None:
    async with serving() as server:
        home = MediaHome(tmp_path, server)
        (home.workspace / "my secret name.wav").write_bytes(SOUND)
        arguments = {"language": "en", "prompt": "Keryx,\r\n--x"}
        ended = await home.call("transcribe", path="my secret name.wav", **arguments)
    (received,) = server.received
    assert received.fields == {
        "model": "transcription-1",
        "response_format": "json",
        "file": SOUND,
        **arguments,
    }
    assert (received.file_name, received.file_type) == ("audio.wav", "audio/wav")
    assert ended.value == {"text": TRANSCRIPT, "media_type": "audio/wav", "bytes": len(SOUND)}
    assert ended.usage == []  # seconds are no tokens, and nothing is invented


async def test_tokens_that_the_server_counted_are_logged(tmp_path: Path) -> None:
    async with serving() as server:
        answer = '{"text": "Hear!", "usage": {"type": "tokens", "input_tokens": 14,'
        server.answers.append(replying(text=answer + '"output_tokens": 45}}'))
        home = MediaHome(tmp_path, server)
        (home.workspace / "a.wav").write_bytes(SOUND)
        ended = await home.call("transcribe", path="a.wav")
    (spent,) = ended.usage
    assert (spent.purpose, spent.call_id) == ("transcription", ended.event.call_id)
    assert spent.usage == Usage(input_tokens=14, output_tokens=45)


async def test_a_file_of_the_largest_size_is_sent_whole(tmp_path: Path) -> None:
    async with serving() as server:
        home = MediaHome(tmp_path, server)
        (home.workspace / "a.wav").write_bytes(SOUND.ljust(LIMIT, b"\0"))
        ended = await home.call("transcribe", path="a.wav")
    assert ended.value["bytes"] == LIMIT == len(server.received[0].fields["file"])


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"path": "missing.wav"}, "no such file"),
        ({"path": "a.png"}, "is not a sound file"),
        ({"path": "empty.wav"}, "is not a sound file"),
        ({"path": "large.wav"}, "split it"),
        ({"path": "folder"}, "is a folder"),
        ({"path": ""}, "the path is empty"),
        ({"path": "a.wav", "language": "English please"}, "a code such as en"),
        ({"path": "a.wav", "prompt": "x" * 4_001}, "shorten it"),
    ],
)
async def test_a_bad_argument_is_a_clear_error_and_costs_nothing(
    tmp_path: Path, arguments: dict[str, Any], problem: str
) -> None:
    async with serving() as server:
        home = MediaHome(tmp_path, server)
        (home.workspace / "folder").mkdir()
        (home.workspace / "a.wav").write_bytes(SOUND)
        (home.workspace / "a.png").write_bytes(PICTURE)
        (home.workspace / "empty.wav").write_bytes(b"")
        with (home.workspace / "large.wav").open("wb") as file:
            file.write(SOUND)
            file.truncate(LIMIT + 1)
        ended = await home.call("transcribe", **arguments)
        assert server.received == []
    assert ended.outcome == "failed"
    assert problem in ended.text


async def test_a_path_outside_the_workspace_needs_a_person(tmp_path: Path) -> None:
    async with serving() as server:
        home = MediaHome(tmp_path, server)
        (tmp_path / "a.wav").write_bytes(SOUND)
        ended = await home.call("transcribe", path=str(tmp_path / "a.wav"))
        assert server.received == []
    assert ended.outcome == "denied"


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (replying(text="<html></html>", content_type="text/html"), "text/html"),
        (replying(text='{"words": []}'), "offers audio/transcriptions"),
        (replying(text='{"text": 3}'), "offers audio/transcriptions"),
        (replying(body=b"\xff\xfe"), "offers audio/transcriptions"),
        (replying(status=404, text="no such model"), "check the model's name"),
        (replying(status=413, text="too large"), "send less at once"),
        (endless, "sent more than"),
    ],
)
async def test_a_bad_answer_is_a_clear_error(tmp_path: Path, answer: Any, problem: str) -> None:
    async with serving() as server:
        server.answers.append(answer)
        home = MediaHome(tmp_path, server)
        (home.workspace / "a.wav").write_bytes(SOUND)
        ended = await home.call("transcribe", path="a.wav")
    assert ended.outcome == "failed"
    assert problem in ended.text
