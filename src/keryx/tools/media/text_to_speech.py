"""`text_to_speech`: a model or a program of this machine reads a text aloud, into a file."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import Any, Final

import msgspec

from keryx.errors import ToolFailedError
from keryx.ports.effects import Effects
from keryx.ports.tool import Risk, Tool
from keryx.ports.tool_context import ToolContext
from keryx.tools.files.content import sized
from keryx.tools.function import tool
from keryx.tools.media.answers import unusable
from keryx.tools.media.media_types import audio_type
from keryx.tools.media.offline_speech import speak
from keryx.tools.media.saving import Destination, Medium, fields
from keryx.tools.media.settings import find_program

FUNCTION: Final = "audio/speech"
MAX_BYTES: Final = 50 * 1024 * 1024
LONGEST_TEXT: Final = 20_000
VOICE: Final = "alloy"
"""The voice of models if the call names none; the API needs one."""
_FORMATS: Final = {".mp3": "mp3", ".wav": "wav", ".opus": "opus", ".flac": "flac", ".aac": "aac"}
DESTINATION: Final = Destination("speech", "speech", tuple(_FORMATS))


def speech_tool(piper_voice: str | None = None) -> Tool:
    """Return the tool; `piper_voice` is the voice file of the program piper."""

    @tool(effects=_effects, risk=_risk, aliases=("tts",))
    async def text_to_speech(
        text: str, context: ToolContext, voice: str | None = None, path: str | None = None
    ) -> Any:
        """Read a text aloud, into a new audio file of the workspace.

        Args:
            text: What is spoken.
            voice: A voice of the model or program; its usual one if left out.
            path: The new file (.mp3, .wav, .opus, .flac, .aac); a fresh name if left out.
        """
        if not text.strip():
            raise ToolFailedError("the text is empty; give the words to speak")
        if len(text) > LONGEST_TEXT:
            raise ToolFailedError(
                f"the text has more than {LONGEST_TEXT:,} characters; speak it in several parts"
            )
        await context.to_thread(DESTINATION.check, context, path)
        if context.has_model_for("speech"):
            medium = await _from_model(context, text, voice, path)
        else:
            medium = await _from_program(context, text, voice, path, piper_voice)
        (name,) = await context.to_thread(DESTINATION.save, context, [medium], path)
        if context.nested:
            return fields(name, medium)
        return f"[saved as {name}, {sized(len(medium.data))}, {medium.media_type}]"

    return text_to_speech


def _effects(args: Any) -> Effects:
    return DESTINATION.effects(args.path)


def _risk(args: Any, workspace: Path) -> Risk:
    return DESTINATION.risk(args.path, 1, workspace)


async def _from_model(
    context: ToolContext, text: str, voice: str | None, path: str | None
) -> Medium:
    endpoint = context.endpoint("speech")
    request = {
        "model": endpoint.model,
        "input": text,
        "voice": voice or VOICE,
        "response_format": _FORMATS.get(PurePath(path or "").suffix.lower(), "mp3"),
    }
    answer = await endpoint.post(
        FUNCTION,
        msgspec.json.encode(request),
        content_type="application/json",
        limit=MAX_BYTES,
    )
    media_type = audio_type(answer.body[:16])
    if media_type is None:
        raise unusable(
            endpoint, FUNCTION, f"{answer.content_type or 'something'}, which is no sound"
        )
    return Medium(answer.body, media_type)


async def _from_program(
    context: ToolContext, text: str, voice: str | None, path: str | None, piper_voice: str | None
) -> Medium:
    program = await context.to_thread(_program, context, piper_voice)
    program_name = Path(program[0]).name
    if path is not None and PurePath(path).suffix.lower() not in ("", ".wav"):
        raise ToolFailedError(
            f"{program_name} makes WAV files only; give a name that ends in .wav, and convert it"
        )
    data = await speak(context, program, text, voice)
    if audio_type(data[:16]) != "audio/wav":
        raise ToolFailedError(f"{program_name} made no WAV file; is it the right program?")
    return Medium(data, "audio/wav")


def _program(context: ToolContext, piper_voice: str | None) -> tuple[str, ...]:
    program = find_program(context.environment.get("PATH", ""), piper_voice)
    if program is None:
        raise ToolFailedError(
            "nothing here can speak; the user can set speech below [models.auxiliary] in "
            "config.toml, or install espeak-ng"
        )
    return program
