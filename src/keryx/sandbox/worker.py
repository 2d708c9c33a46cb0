"""The program that runs process-isolated tools: one call after the other, in its main thread.

Started as a plain script (`python -I worker.py FOLDER...`) with the folders that its host imports
from. Orders come in frames on standard input, and answers go out in frames on the original standard
output; all that a tool, its C code or its children print goes to standard error, and after each
call a mark that the host chose. It knows nothing of sessions and of the host: SIGTERM means that
the call is cancelled.

A tool that reads its token is trusted to end by itself. Any other tool is interrupted by an
exception, so that its `finally` blocks run. If it does not end, the sender of the signal kills it.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    sys.path[:] = sys.argv[1:]  # the host's import path, so that both find the same modules

import asyncio
import contextlib
import ctypes
import importlib
import inspect
import os
import signal
import struct
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal, cast

import msgspec

from keryx.aio.loops import LoopThread
from keryx.aio.scope import CancellationToken, Scope, set_token
from keryx.decoding import msgpack_decoder
from keryx.errors import ToolCancelledError, ToolFailedError
from keryx.messages import Json
from keryx.ports.tool import Tool
from keryx.ports.tool_context import ToolContext
from keryx.ports.workers import SELF_CANCELLED, Returned, described, encode_return
from keryx.sandbox.worker_protocol import LARGEST_CONTENT, Answer, Order, Wired

_decode_order: Final = msgpack_decoder(Order).decode

_LENGTH: Final = struct.Struct(">I")
_PR_SET_CHILD_SUBREAPER: Final = 36
_IOLBF: Final = 1


class InterruptedByHostError(BaseException):
    """Raised in the tool by SIGTERM. Not an Exception, because tools catch those to retry."""


class ObservedToken(CancellationToken):
    """A token that records whether the tool ever read it."""

    __slots__ = ("was_read",)

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self.was_read = False

    def __getattribute__(self, name: str) -> Any:
        if name == "_scope":  # every method of the token reads it
            self.was_read = True
        return super().__getattribute__(name)


class Streams:
    """The descriptors for the frames of the host and for the tool's printed output."""

    def __init__(self) -> None:
        # Copies that no child inherits. For a tool stdin is empty, and stdout goes to stderr.
        self._orders, self._answers, self._prints = os.dup(0), os.dup(1), os.dup(2)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        self._libc = ctypes.CDLL(None)
        self.restore()
        if sys.platform == "linux":
            out = ctypes.c_void_p.in_dll(self._libc, "stdout")
            self._libc.setvbuf(out, None, _IOLBF, ctypes.c_size_t(0))

    def restore(self) -> None:
        """Restore stdout and stderr, which a tool may have replaced."""
        for number in (1, 2):
            os.dup2(self._prints, number)

    def receive(self) -> Order | None:
        """Return the next order; None once the host has closed the stream."""
        header = self._read(_LENGTH.size)
        body = None if header is None else self._read(_LENGTH.unpack(header)[0])
        return None if body is None else _decode_order(body)

    def answer(self, answer: Answer) -> None:
        body = msgspec.msgpack.encode(answer)
        for data in (_LENGTH.pack(len(body)), body):
            _write(self._answers, data)

    def mark(self, mark: bytes) -> bool:
        """Print the mark that ends a call's output. Return False if the output is closed."""
        self._libc.fflush(None)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        try:
            _write(self._prints, mark)
        except OSError:
            return False
        return True

    def _read(self, size: int) -> bytearray | None:
        data = bytearray(size)
        view, at = memoryview(data), 0
        while at < size:
            count = os.readv(self._orders, [view[at:]])
            if not count:
                return None
            at += count
        return data


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


class Worker:
    """Serves orders until the host closes the stream or a call leaves something behind."""

    def __init__(self) -> None:
        self._streams = Streams()
        self._pid = os.getpid()
        self._tools: dict[tuple[str, ...], Tool] = {}
        self._state: Literal["idle", "working", "answering"] = "idle"
        # A scope needs a loop that wakes its waiters while the main thread is in a tool. Async
        # tools run on that loop too, so that their clients find the same loop at the next call.
        self._loop = LoopThread(loop_factory=asyncio.new_event_loop)
        self._scope = self._loop.call(_new_scope)
        self._token: ObservedToken | None = None
        _adopt_orphans()
        self._install_signal_handler()

    def serve(self) -> None:
        while (order := self._streams.receive()) is not None:
            answer = self._perform(order)
            if os.getpid() != self._pid:
                os._exit(0)  # a tool has forked and returned twice
            marked = self._streams.mark(order.mark)
            clean = answer.clean and marked
            self._streams.answer(msgspec.structs.replace(answer, clean=clean, marked=marked))
            if not clean:
                os._exit(0)  # a normal exit would wait for threads that the tool left
            self._streams.restore()
            self._install_signal_handler()
            self._state = "idle"
            if self._scope.is_cancelled:
                return  # the signal came while the answer was being sent

    # -- one call

    def _perform(self, order: Order) -> Answer:
        scope = self._scope.child("call")
        self._token = ObservedToken(scope)
        set_token(self._token)
        self._state = "working"
        try:
            try:
                answer = self._answer(order)
                return msgspec.structs.replace(
                    answer, clean=answer.clean and not scope.is_cancelled
                )
            finally:
                self._state = "answering"
        except InterruptedByHostError:
            self._state = "answering"
            return Answer("interrupted")
        finally:
            set_token(None)
            scope.close()

    def _answer(self, order: Order) -> Answer:
        try:
            tool = self._find(order)
        except InterruptedByHostError:
            raise
        except BaseException as error:  # noqa: BLE001 (a foreign module is run here)
            return _failed(f"the tool cannot be loaded in a process of its own: {described(error)}")
        before = _surroundings()
        try:
            returned, tasks = self._invoke(tool, order.arguments)
            answer = Answer("returned", _wire(returned), returned.complete)
        except InterruptedByHostError:
            raise
        except ToolCancelledError:
            return Answer("interrupted")
        except BaseException as error:  # noqa: BLE001 (a tool may raise anything; it becomes the answer)
            return _failed(described(error))
        has_left_overs = tasks or _has_children() or before != _surroundings()
        return msgspec.structs.replace(answer, clean=not has_left_overs)

    def _find(self, order: Order) -> Tool:
        key = (order.finder, *order.finder_args)
        if key not in self._tools:
            module, _, name = order.finder.partition(":")
            find: Callable[..., Tool] = getattr(importlib.import_module(module), name)
            self._tools[key] = find(*order.finder_args)
        return self._tools[key]

    def _invoke(self, tool: Tool, arguments: str) -> tuple[Returned, int]:
        """Return the tool's result, and how many tasks it left on the loop."""
        no_context = cast("ToolContext", None)  # tools that need one cannot be process-isolated
        value = tool.invoke(tool.parse(arguments), no_context)
        if inspect.isawaitable(value):
            return self._loop.call(_await, value, self._scope)
        return encode_return(value), 0

    # -- signals

    def _install_signal_handler(self) -> None:
        signal.signal(signal.SIGTERM, self._stop)

    def _stop(self, number: int, frame: object) -> None:
        del number, frame
        first = self._scope.cancel("parent", by="SIGTERM")
        if self._state == "idle":
            raise SystemExit
        ends_itself = self._token is not None and self._token.was_read
        if first and self._state == "working" and not ends_itself:
            raise InterruptedByHostError


async def _new_scope() -> Scope:
    return Scope("worker")


async def _await(value: Awaitable[Any], scope: Scope) -> tuple[Returned, int]:
    before = asyncio.all_tasks()
    try:
        returned = encode_return(await value)
    except asyncio.CancelledError as error:
        if scope.is_cancelled:
            raise
        raise ToolFailedError(SELF_CANCELLED) from error
    return returned, len(asyncio.all_tasks() - before)


def _wire(returned: Returned) -> msgspec.Raw:
    content: Wired = tuple(
        bytes(part.value) if isinstance(part, Json) else part for part in returned.content
    )
    try:
        data = msgspec.msgpack.encode(content)
    except ValueError as error:
        raise ToolFailedError(
            f"the tool did its work but returned text that cannot be shown: {error}"
        ) from error
    if len(data) > LARGEST_CONTENT:
        raise ToolFailedError(
            f"the tool did its work but returned {len(data)} bytes; "
            f"no more than {LARGEST_CONTENT} can be passed on"
        )
    return msgspec.Raw(data)


def _failed(text: str) -> Answer:
    return Answer("failed", error=text.encode(errors="replace").decode())


def _surroundings() -> tuple[object, str]:
    """Return the threads and the working directory, which a call must not change."""
    try:
        folder = os.getcwd()  # noqa: PTH109 (the string itself is compared)
    except FileNotFoundError:
        folder = ""
    return set(threading.enumerate()), folder


def _has_children() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


def _adopt_orphans() -> None:
    """Become the parent of orphans of a tool's children, so that they are noticed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


if __name__ == "__main__":
    Worker().serve()
