"""Calls through a folder that is all that is shared with the host: one file each way per call.

    tmp/NAME            held from the first moment of a call to its last: whoever finds it there
                        knows that the name is taken
    tmp/NAME.part       the call being written, then renamed to
    req/NAME.json       the call, until the host claims it by renaming it to
    claimed/NAME.json   the call, while it runs and after
    rep/NAME.json       the answer, deleted by the caller
    req/NAME.cancel     the caller gives up
    server.json         the host writes it anew while it lives

A call that can be renamed back out of `req` has certainly not run. It refuses to know how its
callers wait between two looks.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
import uuid
from typing import Any

from keryx_tools._errors import gone, unsent
from keryx_tools._ways import packets
from keryx_tools._ways.deadline import Deadline

# The first looks for an answer come quickly, for tools that take no time; then ever more seldom.
SHORTEST_PAUSE = 0.001
LONGEST_PAUSE = 0.05
# A host that has shown no sign of life for so long is gone: many times what it allows itself.
DEAD_AFTER = 15.0
# How often to look for that sign.
LOOK_AFTER_HOST = 1.0

_count = itertools.count()


def new_name() -> str:
    return f"{uuid.uuid4().hex}-{os.getpid()}-{next(_count)}"


class Letter:
    """One call in the folder."""

    def __init__(self, folder: str, params: bytes, deadline: Deadline) -> None:
        self._folder = folder
        self._deadline = deadline
        self._pause = SHORTEST_PAUSE
        self._host = _Host(os.path.join(folder, "server.json"))
        self._name = ""
        self._back = False
        self._over = True
        try:
            self._name = self._reserve()
            self._over = False
            self._put(params)
        except OSError as error:
            self.give_up()
            if error.errno is None:
                raise  # not the system's: a signal handler of the script raised it
            raise unsent(deadline.tool, f"{folder}: {error.strerror or error}") from None
        except BaseException:
            self.give_up()
            raise

    def pause(self) -> float:
        """How long to wait before the next look. Raises if there is no use in waiting."""
        left = self._deadline.left()
        if self._host.is_gone():
            why = f"it has shown no sign of life for {DEAD_AFTER:g} s"
            raise (unsent if self._withdraw() else gone)(self._deadline.tool, why)
        pause = self._pause
        self._pause = min(pause * 1.5, LONGEST_PAUSE)
        return pause if left is None else min(pause, left)

    def answer(self) -> dict[str, Any] | None:
        """The packet that answers, if it is there."""
        path = self._path("rep", ".json")
        try:
            with open(path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise gone(self._deadline.tool, f"{path}: {error.strerror}") from None
        try:
            packet = packets.decoded(data)
        except packets.PacketError as error:
            raise gone(self._deadline.tool, error) from None
        self._over = True
        self._remove("rep", ".json")
        self._remove("tmp")
        return packet

    def give_up(self) -> None:
        """Take the call back, or have it cancelled if it runs."""
        if self._over:
            return
        self._over = True
        if not (self._back or self._withdraw()):
            with contextlib.suppress(OSError):
                os.close(_create(self._path("req", ".cancel")))
        self._remove("tmp", ".part")
        self._remove("tmp")

    # -- files

    def _reserve(self) -> str:
        while True:
            self._name = new_name()
            if any(os.path.exists(self._path(part, ".json")) for part in ("req", "claimed", "rep")):
                continue
            try:
                os.close(_create(self._path("tmp")))
            except FileExistsError:
                continue
            return self._name

    def _put(self, params: bytes) -> None:
        part = self._path("tmp", ".part")
        with open(_create(part), "wb") as file:
            file.write(packets.call(1, b"call", params))
        os.rename(part, self._path("req", ".json"))

    def _withdraw(self) -> bool:
        taken = self._path("tmp", ".part")
        try:
            os.rename(self._path("req", ".json"), taken)
        except OSError:
            return False
        self._back = True
        self._remove("tmp", ".part")
        return True

    def _remove(self, part: str, ending: str = "") -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._path(part, ending))

    def _path(self, part: str, ending: str = "") -> str:
        return os.path.join(self._folder, part, self._name + ending)


class _Host:
    """Whether the host still writes its sign of life. Clocks may differ; so only changes count."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen: bytes | None = None
        self._changed = self._looked = time.monotonic()

    def is_gone(self) -> bool:
        now = time.monotonic()
        if now - self._looked >= LOOK_AFTER_HOST:
            self._looked = now
            seen = self._read()
            if seen is not None and seen != self._seen:
                self._seen, self._changed = seen, now
        return now - self._changed > DEAD_AFTER

    def _read(self) -> bytes | None:
        try:
            with open(self._path, "rb") as file:
                return file.read()
        except OSError:
            return None


def _create(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
