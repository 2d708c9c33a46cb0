"""A model of this machine: it waits for a slot of its worker, and the adapter for Chat Completions
talks to it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

import msgspec
from msgspec.structs import replace

from keryx.decoding import json_decoder
from keryx.errors import ModelError
from keryx.messages import Message
from keryx.models.embedded.chat_only import chat_history, chat_system
from keryx.models.embedded.model_file import ModelFile
from keryx.models.embedded.worker_process import WorkerProcess
from keryx.models.embedded.workers import Workers
from keryx.models.http import Clients
from keryx.models.openai import OpenAIModel
from keryx.models.wire.quirks import Quirks
from keryx.ports.model import Finished, ModelRequest, Piece

FIRST_BYTE_TIMEOUT: Final = 3600.0
"""A long prompt on a slow machine takes many minutes; the worker's end is noticed at once."""

# The worker closes connections that were idle; a request on such a one would fail.
_HEADERS: Final = {"Connection": "close"}
_decode: Final = json_decoder(Message).decode
_BROKEN: Final = frozenset({"unreachable", "bad_response", "stalled"})
"""The kinds of errors that the end of the worker causes."""


_QUIRKS: Final = Quirks(names_parallel_calls=True)


class EmbeddedModel:
    """One GGUF file. It asks once; a worker that dies is one failed request. Replies are free."""

    def __init__(self, name: str, file: ModelFile, workers: Workers, clients: Clients) -> None:
        self.name: Final = name
        self.sees_images: Final = False
        self._file = file
        self._workers = workers
        self._clients = clients
        self._adapter: tuple[WorkerProcess, OpenAIModel] | None = None
        self._window: int | None = file.window if file.pull_name else None

    def __repr__(self) -> str:
        return f"EmbeddedModel({self.name!r})"

    @property
    def window(self) -> int | None:
        """The window; unknown until a file of the user's own is loaded for the first time."""
        return self._window

    def encode(self, message: Message) -> bytes:
        """Encode the message as it is: what its template can show is known when it is loaded."""
        return msgspec.json.encode(message)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        async with self._workers.slot(self._file) as worker:
            self._window = worker.window
            adapter = self._adapter_of(worker)
            pieces = adapter.stream(self._prepared(request, worker, adapter))
            try:
                async with aclosing(pieces):
                    async for piece in pieces:
                        yield replace(piece, cost=0.0) if isinstance(piece, Finished) else piece
            except ModelError as error:
                if error.kind in _BROKEN and (how := await worker.wait_ended()):
                    raise _died(self.name, how) from error
                raise

    def _adapter_of(self, worker: WorkerProcess) -> OpenAIModel:
        if self._adapter is None or self._adapter[0] is not worker:
            adapter = OpenAIModel(
                name=self.name,
                model=self._file.path.name,
                base_url=f"{worker.address}/v1",
                api_key=worker.key,
                clients=self._clients,
                first_byte=FIRST_BYTE_TIMEOUT,
                headers=_HEADERS,
                quirks=_QUIRKS,
            )
            self._adapter = (worker, adapter)
        return self._adapter[1]

    def _prepared(
        self, request: ModelRequest, worker: WorkerProcess, adapter: OpenAIModel
    ) -> ModelRequest:
        messages = [_decode(encoded) for encoded in request.history]
        longest = request.max_tokens or self._file.longest_reply
        if not worker.has_tools:
            return replace(
                request,
                system=chat_system(request.system),
                history=chat_history(messages),
                tools=(),
                tool_choice=None,
                effort=None,
                max_tokens=longest,
            )
        history = tuple(adapter.encode(message) for message in messages)
        return replace(request, history=history, max_tokens=longest)


def _died(name: str, how: str) -> ModelError:
    return ModelError(
        "internal",
        f"the process of {name} ended while it answered ({how})",
        "ask again: it is started anew; if that happens often, the machine may lack memory",
    )
