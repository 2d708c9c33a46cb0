"""Speech without a model: programs of this machine, confined, with the text on their stdin."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from keryx.errors import SpawnError, ToolFailedError
from keryx.ports.tool_context import ToolContext
from keryx.tools.media.settings import ESPEAK

MAX_BYTES: Final = 64 * 1024 * 1024
"""Of the sound: it is not compressed, and this is about 25 minutes of it."""
LONGEST: Final = 300.0
"""Seconds that a program may take."""
_MAX_ERRORS: Final = 2_000
_VOICE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9+_.-]{0,63}")
_HEADER: Final = 44
"""Bytes before the sound in a WAV file."""


async def speak(
    context: ToolContext, program: Sequence[str], text: str, voice: str | None
) -> bytes:
    """Return the sound as a WAV file; `ToolFailedError` says why there is none.

    `program` is the path of the program, and its arguments.
    """
    name = Path(program[0]).name
    argv = [*program, *_voice_options(name, voice)]
    sound = _Sound()
    try:
        async with asyncio.timeout(LONGEST):
            process = await context.place.spawn(argv, output=sound, stdin=True)
            async with process:
                sound.stop_when_full(process.kill)
                with contextlib.suppress(BrokenPipeError):  # its exit code says why
                    await process.write(text.encode(errors="replace"))
                process.close_stdin()
                exit_ = await process.wait()
    except TimeoutError as error:
        raise ToolFailedError(
            f"{name} had not finished after {LONGEST:.0f} s; give it less text"
        ) from error
    except SpawnError as error:
        raise ToolFailedError(
            f"{name} cannot be started: {error}; it must be installed for all users"
        ) from error
    if sound.full:
        raise ToolFailedError("the speech would be longer than 25 minutes; give less text")
    if exit_.code != 0 or len(sound.data) <= _HEADER:
        reason = (
            sound.errors or f"it ended with {exit_.code if exit_.signal is None else 'a signal'}"
        )
        raise ToolFailedError(f"{name} made no speech: {reason}; change the text or voice")
    return _with_sizes(bytes(sound.data))


def _voice_options(name: str, voice: str | None) -> tuple[str, ...]:
    if voice is None:
        return ()
    if name != ESPEAK:
        raise ToolFailedError(f"{name} has one voice here; leave `voice` out")
    if _VOICE.fullmatch(voice) is None:
        raise ToolFailedError(f"{voice!r:.80} is not a voice; write one such as en-us or de")
    return "-v", voice


def _with_sizes(sound: bytes) -> bytes:
    """Return the WAV file with its real sizes, which a program that writes to a pipe cannot know.

    They are in the header: after `RIFF`, and after `data`, where the sound begins.
    """
    if sound[:4] != b"RIFF" or sound[36:40] != b"data":
        return sound
    sizes = [(len(sound) - start).to_bytes(4, "little") for start in (8, _HEADER)]
    return b"".join((sound[:4], sizes[0], sound[8:40], sizes[1], sound[_HEADER:]))


class _Sound:
    """Collects the sound that a program writes, up to a limit."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.full = False
        self._errors = bytearray()
        self._stop: Callable[[], None] | None = None

    def stop_when_full(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        if self.full:
            stop()

    def feed(self, stream: str, data: bytes) -> None:
        if stream == "stderr":
            self._errors += data[: _MAX_ERRORS - len(self._errors)]
        elif not self.full:
            self.data += data
            self.full = len(self.data) > MAX_BYTES
            if self.full and self._stop is not None:
                self._stop()

    @property
    def errors(self) -> str:
        return " ".join(self._errors.decode(errors="replace").split())
