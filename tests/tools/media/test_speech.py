"""`text_to_speech`: with a model, with programs of this machine, and what goes wrong."""

from __future__ import annotations

import io
import os
import wave
from pathlib import Path
from typing import Any

import pytest

from keryx.app.models import Models
from keryx.app.tools import Tools
from keryx.config import load
from keryx.messages import Reason
from tests.tools.hanging_tools import SOUND
from tests.tools.media.media_server import endless, replying, serving
from tests.tools.media.media_session import MediaHome
from tests.tools.tool_session import ToolSession

pytestmark = pytest.mark.promise("kit.3")

SYSTEM = "/usr/bin:/bin"
REASONS: tuple[Reason, ...] = ("interrupt", "steer", "timeout", "shutdown", "parent")


async def test_a_model_speaks_into_a_new_file(tmp_path: Path) -> None:
    async with serving() as server:
        home = MediaHome(tmp_path, server)
        ended = await home.call("text_to_speech", text="Hear!", voice="nova")
    (received,) = server.received
    assert received.fields == {
        "model": "speech-1",
        "input": "Hear!",
        "voice": "nova",
        "response_format": "mp3",
    }
    assert ended.text == "[saved as speech/speech-1.mp3, 10 bytes, audio/mpeg]"
    assert set(home.files()) == {"speech/speech-1.mp3"}
    assert ended.usage == []


async def test_the_name_of_the_file_chooses_the_format(tmp_path: Path) -> None:
    async with serving() as server:
        home = MediaHome(tmp_path, server)
        result = await home.script(
            "from keryx_tools import finish, text_to_speech\n"
            "finish(dict(text_to_speech('Hear!', path='a/hear.wav')))\n"
        )
    assert server.received[0].fields["response_format"] == "wav"
    assert result == {"path": "a/hear.wav", "size": len(SOUND), "media_type": "audio/wav"}
    assert home.files() == {"a/hear.wav": SOUND}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"text": "  "}, "the text is empty"),
        ({"text": "x" * 20_001}, "in several parts"),
        ({"text": "x", "path": "a.txt"}, "ends in .mp3"),
        ({"text": "x", "path": "there.mp3"}, "choose another name"),
    ],
)
async def test_a_bad_argument_is_a_clear_error_and_costs_nothing(
    tmp_path: Path, arguments: dict[str, Any], problem: str
) -> None:
    async with serving() as server:
        home = MediaHome(tmp_path, server)
        (home.workspace / "there.mp3").write_bytes(b"mine")
        ended = await home.call("text_to_speech", **arguments)
        assert server.received == []
    assert ended.outcome == "failed"
    assert problem in ended.text
    assert home.files() == {"there.mp3": b"mine"}


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (replying(text="<html></html>", content_type="text/html"), "text/html, which is no sound"),
        (replying(text='{"error": "no"}', content_type="application/json"), "application/json"),
        (replying(body=b"\xff\xfeh\x00i\x00"), "which is no sound"),
        (replying(body=b""), "which is no sound"),
        (endless, "sent more than"),
    ],
)
async def test_a_bad_answer_is_a_clear_error_and_no_file(
    tmp_path: Path, answer: Any, problem: str
) -> None:
    async with serving() as server:
        server.answers.append(answer)
        home = MediaHome(tmp_path, server)
        ended = await home.call("text_to_speech", text="Hear!")
    assert ended.outcome == "failed"
    assert problem in ended.text
    assert home.files() == {}


# -- programs of this machine


async def test_espeak_speaks_without_a_model_confined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", SYSTEM)
    home = MediaHome(tmp_path, purposes=())
    ended = await home.call("text_to_speech", text="Hear, all of you!", voice="en-us")
    assert ended.outcome == "completed", ended.text
    ((name, data),) = home.files().items()
    assert name == "speech/speech-1.wav"
    with wave.open(io.BytesIO(data)) as sound:
        assert sound.getnframes() * sound.getsampwidth() == len(data) - 44
        assert sound.getnframes() > sound.getframerate()


async def test_a_voice_that_espeak_does_not_have_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", SYSTEM)
    home = MediaHome(tmp_path, purposes=())
    ended = await home.call("text_to_speech", text="Hear!", voice="nobody")
    assert ended.outcome == "failed"
    assert "voice does not exist" in ended.text
    assert home.files() == {}


def program(folder: Path, name: str, script: str) -> None:
    """Install a program of this name in the folder."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


class Speaking:
    """A session without a model for speech, whose PATH begins with a folder of programs."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.workspace = folder / "bin", folder / "workspace"
        self.bin.mkdir()
        self.workspace.mkdir()
        self.session = ToolSession(self.workspace, {"PATH": f"{self.bin}:/usr/bin:/bin"})

    async def __aenter__(self) -> ToolSession:
        await self.session.open()
        self.session.models.configured = frozenset()
        return self.session

    async def __aexit__(self, *exc: object) -> None:
        await self.session.close()


async def test_the_sessions_path_counts_and_the_text_is_never_an_argument(tmp_path: Path) -> None:
    speaking = Speaking(tmp_path)
    (tmp_path / "sound").write_bytes(SOUND)
    program(
        speaking.bin,
        "espeak-ng",
        f'echo "$@" > {tmp_path}/arguments; cat > {tmp_path}/text; cat {tmp_path}/sound',
    )
    text = "--version; $(touch oops) 'quoted'\nand more"
    async with speaking as session:
        (outcome,) = await session.run(session.call("text_to_speech", text=text, voice="de"))
    assert outcome.outcome == "completed", outcome.text
    assert (tmp_path / "arguments").read_text() == "--stdin --stdout -v de\n"
    assert (tmp_path / "text").read_text() == text
    assert (speaking.workspace / "speech" / "speech-1.wav").read_bytes() == SOUND


@pytest.mark.parametrize(
    ("script", "arguments", "problem"),
    [
        ("echo broken >&2; exit 3", {}, "made no speech: broken"),
        ("exit 0", {}, "made no speech"),
        ("head -c 100 /dev/zero", {}, "made no WAV file"),
        ("cat /dev/zero", {}, "longer than 25 minutes"),
        ("exit 0", {"voice": "--help"}, "is not a voice"),
        ("exit 0", {"voice": "../../etc/passwd"}, "is not a voice"),
        ("exit 0", {"path": "hear.mp3"}, "WAV files only"),
    ],
)
async def test_a_program_that_does_not_speak_is_a_clear_error(
    tmp_path: Path, script: str, arguments: dict[str, str], problem: str
) -> None:
    speaking = Speaking(tmp_path)
    program(speaking.bin, "espeak-ng", script)
    async with speaking as session:
        (outcome,) = await session.run(session.call("text_to_speech", text="Hear!", **arguments))
    assert outcome.outcome == "failed"
    assert problem in outcome.text
    assert list(speaking.workspace.iterdir()) == []


@pytest.mark.parametrize("reason", REASONS)
async def test_a_program_that_hangs_is_ended_by_a_cancel(tmp_path: Path, reason: Reason) -> None:
    speaking = Speaking(tmp_path)
    program(speaking.bin, "espeak-ng", f"echo hanging > {tmp_path}/begun; sleep 1000 | cat")
    async with speaking as session:
        fifo = tmp_path / "begun"
        await session.runtime.bridge.to_thread(_make_fifo, fifo)
        call = session.call("text_to_speech", text="Hear!")
        batch = session.start(call)
        await session.runtime.bridge.to_thread(fifo.read_bytes)
        batch.cancel(call.call_id, reason, by="tester")
        (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.reason, outcome.left_over) == ("cancelled", reason, ())
    assert list(speaking.workspace.iterdir()) == []


def _make_fifo(path: Path) -> None:
    os.mkfifo(path)


async def test_piper_speaks_with_its_configured_voice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bin"
    (tmp_path / "sound").write_bytes(SOUND)
    program(
        folder, "piper", f'echo "$@" > {tmp_path}/arguments; cat > /dev/null; cat {tmp_path}/sound'
    )
    monkeypatch.setenv("PATH", f"{folder}:{SYSTEM}")
    home = MediaHome(
        tmp_path,
        purposes=(),
        general='confinement = "off"',
        more='[tools.speech]\npiper_voice = "/voices/amy.onnx"',
    )
    ended = await home.call("text_to_speech", text="Hear!")
    assert ended.outcome == "completed", ended.text
    assert (tmp_path / "arguments").read_text() == "--model /voices/amy.onnx --output_file -\n"
    ended = await home.call("text_to_speech", text="Hear!", voice="nova")
    assert "leave `voice` out" in ended.text


# -- what is offered


@pytest.mark.parametrize(
    ("purposes", "path", "offered"),
    [
        ((), "/nowhere", set[str]()),
        ((), SYSTEM, {"text_to_speech"}),
        (("image",), "/nowhere", {"image_generate"}),
        (("speech",), "/nowhere", {"text_to_speech"}),
        (("transcription",), "/nowhere", {"transcribe"}),
    ],
)
def test_only_what_can_work_is_offered_and_the_rest_says_what_it_needs(
    tmp_path: Path, purposes: tuple[str, ...], path: str, offered: set[str]
) -> None:
    home = MediaHome(tmp_path, purposes=purposes)
    config = load(home.home, {"PATH": path, "HOME": str(tmp_path)})
    media = {"image_generate", "text_to_speech", "transcribe"}
    assert media & set(Tools.built_in(config).by_name) == offered
    needs = Tools.missing(config)
    assert {line.split()[0] for line in needs if line.split()[0] in media} == media - offered
    for line in needs:
        if line.split()[0] in media:
            assert "[models.auxiliary]" in line


def test_models_for_media_are_not_offered_as_models_of_a_session(tmp_path: Path) -> None:
    home = MediaHome(tmp_path)
    config = load(home.home, {"PATH": SYSTEM})
    assert Models(config).names() == ["here:chat"]
