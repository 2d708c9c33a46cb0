"""Speech without a model: programs of this machine, confined, with the text on their stdin."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
from collections.abc import Callable
from typing import Final

import msgspec

from keryx.errors import SpawnError, ToolFailedError
from keryx.ports.tool_context import ToolContext

MAX_BYTES: Final = 64 * 1024 * 1024
"""Of the sound: it is not compressed, and this is about 25 minutes of it."""
LONGEST: Final = 300.0
"""Seconds that a program may take."""
_MAX_ERRORS: Final = 2_000
_VOICE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9+_.-]{0,63}")
_HEADER: Final = 44
"""Bytes before the sound in a WAV file."""


class Program(msgspec.Struct, frozen=True):
    """A program that speaks, and its arguments."""

    name: str
    argv: tuple[str, ...]
    takes_voices: bool


def find_program(search_path: str, piper_voice: str | None = None) -> Program | None:
    """Return a program on this PATH that speaks; None if there is none. Reads the disk."""
    # Other programs are called piper too, so it counts only with a voice.
    piper = shutil.which("piper", path=search_path) if piper_voice else None
    if piper is not None and piper_voice is not None:
        return Program("piper", (piper, "--model", piper_voice, "--output_file", "-"), False)
    espeak = shutil.which("espeak-ng", path=search_path)
    return None if espeak is None else Program("espeak-ng", (espeak, "--stdin", "--stdout"), True)


async def speak(context: ToolContext, program: Program, text: str, voice: str | None) -> bytes:
    """Return the sound as a WAV file; `ToolFailedError` says why there is none."""
    argv = [*program.argv, *_voice_options(program, voice)]
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
            f"{program.name} had not finished after {LONGEST:.0f} s; give it less text"
        ) from error
    except SpawnError as error:
        raise ToolFailedError(
            f"{program.name} cannot be started: {error}; it must be installed for all users"
        ) from error
    if sound.full:
        raise ToolFailedError("the speech would be longer than 25 minutes; give less text")
    if exit_.code != 0 or len(sound.data) <= _HEADER:
        reason = (
            sound.errors or f"it ended with {exit_.code if exit_.signal is None else 'a signal'}"
        )
        raise ToolFailedError(f"{program.name} made no speech: {reason}; change the text or voice")
    return _with_sizes(bytes(sound.data))


def _voice_options(program: Program, voice: str | None) -> tuple[str, ...]:
    if voice is None:
        return ()
    if not program.takes_voices:
        raise ToolFailedError(f"{program.name} has one voice here; leave `voice` out")
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
