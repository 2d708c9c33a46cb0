"""What the media tools need from the configuration, as plain values, and the tools made from it."""

from __future__ import annotations

import importlib
import shutil
from typing import Any, Final

import msgspec

from keryx.ports.tool import Tool

ESPEAK: Final = "espeak-ng"
PIPER: Final = "piper"


class MediaSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the media tools."""

    image: bool = False
    """Whether a model is configured that makes images; likewise the next two."""
    speech: bool = False
    transcription: bool = False
    search_path: str = ""
    """Where programs of this machine are looked for, like PATH."""
    piper_voice: str | None = None
    allow_private: tuple[str, ...] = ()


NO_MEDIA: Final = MediaSettings()


def media_tools(settings: MediaSettings = NO_MEDIA) -> list[Tool]:
    """Return the media tools that can work here. Reads the disk."""
    tools: list[Tool] = []
    if settings.image:
        tools.append(_module("image_generate").image_tool(settings.allow_private))
    if _speaks(settings):
        tools.append(_module("text_to_speech").speech_tool(settings.piper_voice))
    if settings.transcription:
        tools.append(_module("transcribe").transcribe)
    return tools


def missing(settings: MediaSettings = NO_MEDIA) -> tuple[str, ...]:
    """Return what is missing for each tool that is not offered, and how to get it."""
    lines: list[str] = []
    if not settings.image:
        lines.append(f"image_generate needs a model that makes images: {_advice('image')}")
    if not _speaks(settings):
        lines.append(
            f"text_to_speech needs a model or a program that speaks: {_advice('speech')}, or "
            "install espeak-ng (on Debian: apt install espeak-ng)"
        )
    if not settings.transcription:
        lines.append(f"transcribe needs a model for it: {_advice('transcription')}")
    return tuple(lines)


def find_program(search_path: str, piper_voice: str | None = None) -> tuple[str, ...] | None:
    """Return a program on this PATH that speaks, with its arguments. Reads the disk."""
    # Other programs are called piper too, so it counts only with a voice.
    if piper_voice and (piper := shutil.which(PIPER, path=search_path)):
        return piper, "--model", piper_voice, "--output_file", "-"
    espeak = shutil.which(ESPEAK, path=search_path)
    return None if espeak is None else (espeak, "--stdin", "--stdout")


def _speaks(settings: MediaSettings) -> bool:
    return settings.speech or find_program(settings.search_path, settings.piper_voice) is not None


def _advice(purpose: str) -> str:
    return f'set {purpose} = "provider:name" in [models.auxiliary]'


def _module(name: str) -> Any:
    """Import the module of one tool: most hosts have no model for it, and start faster without."""
    return importlib.import_module(f"keryx.tools.media.{name}")
