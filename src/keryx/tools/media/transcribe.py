"""`transcribe`: a model writes down what is said in a sound file of the workspace."""

from __future__ import annotations

import re
import secrets
from typing import Any, Final

import msgspec

from keryx.errors import ToolFailedError
from keryx.ports.effects import NO_EFFECTS, Effects, reads
from keryx.ports.tool_context import ToolContext
from keryx.tools.files import safe_open
from keryx.tools.files.content import sized
from keryx.tools.files.file_access import reading_risk
from keryx.tools.function import tool
from keryx.tools.media.answers import decode, usage_of
from keryx.tools.media.media_types import SUFFIXES, audio_type

FUNCTION: Final = "audio/transcriptions"
MAX_BYTES: Final = 25 * 1024 * 1024
"""What the API takes."""
_MAX_ANSWER: Final = 4 * 1024 * 1024
LONGEST_PROMPT: Final = 4_000
_LANGUAGE: Final = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")


class _Answer(msgspec.Struct, frozen=True):
    text: str


class _Sound(msgspec.Struct, frozen=True):
    """The file to transcribe."""

    data: bytes
    media_type: str


def _reads_path(args: Any) -> Effects:
    return NO_EFFECTS if "\0" in args.path else reads(args.path)


@tool(effects=_reads_path, risk=reading_risk, replay="safe")
async def transcribe(
    path: str, context: ToolContext, language: str | None = None, prompt: str | None = None
) -> dict[str, Any]:
    """Write down what is said in a sound file (MP3, WAV, M4A, OGG, FLAC, WebM; up to 25 MB).

    Args:
        path: The file, relative to the workspace, or an attachment ($KERYX_UPLOADS/...).
        language: The language as a code such as en or de; recognized if left out.
        prompt: Names and words that occur in it, to spell them right.
    """
    if language is not None and _LANGUAGE.fullmatch(language) is None:
        raise ToolFailedError(f"{language!r:.40} is not a language; write a code such as en or de")
    if prompt is not None and len(prompt) > LONGEST_PROMPT:
        raise ToolFailedError(f"the prompt has more than {LONGEST_PROMPT:,} characters; shorten it")
    endpoint = context.endpoint("transcription")
    sound = await context.to_thread(_read, context, path)
    options = {"model": endpoint.model, "language": language, "prompt": prompt}
    boundary = f"keryx-{secrets.token_hex(16)}"
    answer = await endpoint.post(
        FUNCTION,
        await context.to_thread(_form, boundary, options, sound),
        content_type=f"multipart/form-data; boundary={boundary}",
        limit=_MAX_ANSWER,
    )
    if (usage := usage_of(answer)) is not None:
        endpoint.log_usage(usage)
    text = decode(endpoint, FUNCTION, answer, _Answer).text
    return {"text": text, "media_type": sound.media_type, "bytes": len(sound.data)}


def _read(context: ToolContext, path: str) -> _Sound:
    files = context.files
    target = files.resolve(path, write=False)
    name = files.name(target)
    with safe_open.readable_errors(name), safe_open.open_file(target, name) as file:
        data = file.read(0, MAX_BYTES + 1)
        size = max(file.size, len(data))
    if size > MAX_BYTES:
        raise ToolFailedError(
            f"{name} has {sized(size)}, and the most is {sized(MAX_BYTES)}; split it, or compress "
            "it as MP3 or OGG"
        )
    media_type = audio_type(data[:16])
    if media_type is None:
        raise ToolFailedError(
            f"{name} is not a sound file of a usual kind; convert it to MP3 or WAV first"
        )
    return _Sound(data, media_type)


def _form(boundary: str, options: dict[str, str | None], sound: _Sound) -> bytes:
    """Return the body of the request: the options and the file, as a form."""
    parts: list[bytes] = []
    for name, value in {**options, "response_format": "json"}.items():
        if value is not None:
            head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'
            parts += [head.encode(), value.encode(errors="replace"), b"\r\n"]
    # The server recognizes the kind by the ending; the name itself is nobody's business.
    file_name = f"audio{SUFFIXES[sound.media_type][0]}"
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{file_name}"\r\n'
        f"Content-Type: {sound.media_type}\r\n\r\n"
    )
    parts += [head.encode(), sound.data, f"\r\n--{boundary}--\r\n".encode()]
    return b"".join(parts)
