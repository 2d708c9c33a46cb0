"""Reads an image from the clipboard, with the program that the desktop has for it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

from keryx.app import Runtime
from keryx.errors import SpawnError, UserMustActError

LARGEST: Final = 20_000_000
PNG: Final = b"\x89PNG"
PASSED_ON: Final = ("PATH", "DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "HOME")
ADVICE: Final = "save the image as a file and use /attach FILE"


class _Collected:
    """Keeps what a program prints, up to a limit."""

    def __init__(self) -> None:
        self.data = bytearray()

    def feed(self, stream: str, data: bytes) -> None:
        if stream != "stderr" and len(self.data) <= LARGEST:
            self.data += data


async def read_image(environment: Mapping[str, str]) -> bytes:
    """Return the image as PNG; `UserMustActError` says why there is none."""
    argv = _program(environment)
    variables = {name: environment[name] for name in PASSED_ON if name in environment}
    collected = _Collected()
    async with Runtime() as runtime:
        try:
            process = await runtime.warden.spawn(argv, env=variables, cwd="/", output=collected)
        except SpawnError as error:
            raise UserMustActError(
                f"The clipboard cannot be read without {argv[0]}; install it, or {ADVICE}"
            ) from error
        async with process:
            ended = await process.wait()
    if ended.code != 0 or not collected.data.startswith(PNG):
        raise UserMustActError("The clipboard holds no image.")
    if len(collected.data) > LARGEST:
        raise UserMustActError(f"The image is larger than 20 MB; {ADVICE}")
    return bytes(collected.data)


def _program(environment: Mapping[str, str]) -> tuple[str, ...]:
    if environment.get("WAYLAND_DISPLAY"):
        return ("wl-paste", "--no-newline", "--type", "image/png")
    if environment.get("DISPLAY"):
        return ("xclip", "-selection", "clipboard", "-target", "image/png", "-out")
    if sys.platform == "darwin":
        return ("pngpaste", "-")
    raise UserMustActError(
        f"A terminal can paste only text, and there is no desktop to ask for an image; {ADVICE}"
    )
