"""Calls by files, if only a folder is shared with the host: one for the call, one for the answer.

    tmp/NAME            reserves the name, from the start of the call to its end
    tmp/NAME.part       the call while it is written, then renamed to
    req/NAME.json       the call, until the host claims it by renaming it to
    claimed/NAME.json   the call, while it runs and after
    rep/NAME.json       the answer, deleted by the caller
    req/NAME.cancel     the caller gives up
    server.json         the heartbeat of the host

A call that can be renamed back out of `req` has certainly not run. This module knows nothing of how
its callers wait between two checks.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
import uuid
from typing import Any

from keryx_tools._errors import lost_error, unsent_error
from keryx_tools._transports import packets
from keryx_tools._transports.deadline import Deadline

# The first checks for an answer come quickly, for fast tools; then the pauses grow.
SHORTEST_PAUSE = 0.001
LONGEST_PAUSE = 0.05
# A host without a heartbeat for so long is dead: it writes one every second.
DEAD_AFTER = 15.0
# Seconds between two checks of the heartbeat.
HEARTBEAT_CHECK = 1.0

_count = itertools.count()


def new_name() -> str:
    return f"{uuid.uuid4().hex}-{os.getpid()}-{next(_count)}"


class FileCall:
    """One call in the folder."""

    def __init__(self, folder: str, params: bytes, deadline: Deadline) -> None:
        self._folder = folder
        self._deadline = deadline
        self._pause = SHORTEST_PAUSE
        self._host = _Host(os.path.join(folder, "server.json"))
        self._name = ""
        self._withdrawn = False
        self._ended = True
        try:
            self._name = self._reserve()
            self._ended = False
            self._put(params)
        except OSError as error:
            self.give_up()
            if error.errno is None:
                raise  # a signal handler of the script raised it, not the system
            raise unsent_error(deadline.tool, f"{folder}: {error.strerror or error}") from None
        except BaseException:
            self.give_up()
            raise

    def pause(self) -> float:
        """Return the pause before the next check; raise at the deadline or if the host is dead."""
        remaining = self._deadline.remaining()
        if self._host.is_dead():
            why = f"it has shown no sign of life for {DEAD_AFTER:g} s"
            raise (unsent_error if self._withdraw() else lost_error)(self._deadline.tool, why)
        pause = self._pause
        self._pause = min(pause * 1.5, LONGEST_PAUSE)
        return pause if remaining is None else min(pause, remaining)

    def answer(self) -> dict[str, Any] | None:
        """Return the packet that answers; None if it is not there yet."""
        path = self._path("rep", ".json")
        try:
            with open(path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise lost_error(self._deadline.tool, f"{path}: {error.strerror}") from None
        try:
            packet = packets.decode(data)
        except packets.PacketError as error:
            raise lost_error(self._deadline.tool, error) from None
        self._ended = True
        self._remove("rep", ".json")
        self._remove("tmp")
        return packet

    def give_up(self) -> None:
        """Withdraw the call, or cancel it if it runs."""
        if self._ended:
            return
        self._ended = True
        if not (self._withdrawn or self._withdraw()):
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
        part = self._path("tmp", ".part")
        try:
            os.rename(self._path("req", ".json"), part)
        except OSError:
            return False
        self._withdrawn = True
        self._remove("tmp", ".part")
        return True

    def _remove(self, part: str, ending: str = "") -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._path(part, ending))

    def _path(self, part: str, ending: str = "") -> str:
        return os.path.join(self._folder, part, self._name + ending)


class _Host:
    """Checks the heartbeat of the host. Clocks may differ, so only changes count."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._heartbeat: bytes | None = None
        self._changed = self._checked = time.monotonic()

    def is_dead(self) -> bool:
        now = time.monotonic()
        if now - self._checked >= HEARTBEAT_CHECK:
            self._checked = now
            heartbeat = self._read()
            if heartbeat is not None and heartbeat != self._heartbeat:
                self._heartbeat, self._changed = heartbeat, now
        return now - self._changed > DEAD_AFTER

    def _read(self) -> bytes | None:
        try:
            with open(self._path, "rb") as file:
                return file.read()
        except OSError:
            return None


def _create(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
