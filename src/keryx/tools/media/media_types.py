"""Which media a file holds, by its first bytes, and how such a file is named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SUFFIXES: Final[Mapping[str, tuple[str, ...]]] = {
    "image/png": (".png",),
    "image/jpeg": (".jpg", ".jpeg"),
    "image/webp": (".webp",),
    "image/gif": (".gif",),
    "audio/mpeg": (".mp3",),
    "audio/wav": (".wav",),
    "audio/ogg": (".ogg", ".opus", ".oga"),
    "audio/flac": (".flac",),
    "audio/aac": (".aac",),
    "audio/mp4": (".m4a", ".mp4"),
    "audio/webm": (".webm",),
}
"""The endings of file names by media type; the usual one comes first."""

_MAGIC: Final = (
    (b"ID3", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"\x1a\x45\xdf\xa3", "audio/webm"),
)
# A frame of MPEG audio begins with eleven set bits; then come two bits each of version and layer.
_SYNC: Final = 0xE0
_LAYERS: Final = {0: "audio/aac", 1: "audio/mpeg", 2: "audio/mpeg"}


def audio_type(head: bytes) -> str | None:
    """Return the media type of a sound; None if this is none that is usual."""
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
        return "audio/wav"
    if head[4:8] == b"ftyp":
        return "audio/mp4"
    for magic, media_type in _MAGIC:
        if head.startswith(magic):
            return media_type
    if len(head) > 1 and head[0] == 0xFF and head[1] & _SYNC == _SYNC:  # noqa: PLR2004 (set bits)
        return _LAYERS.get(head[1] >> 1 & 3)
    return None


def fitting_suffix(media_type: str, suffix: str) -> str:
    """Return the suffix if files of this type may have it, else the usual one."""
    suffixes = SUFFIXES[media_type]
    return suffix if suffix.lower() in suffixes else suffixes[0]
