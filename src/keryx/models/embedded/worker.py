"""The program that runs one GGUF file: a server of Chat Completions on loopback.

It reads its order as one line of JSON from stdin, and writes one line when the model is loaded, or
why it cannot be. It ends when stdin closes. A fault of the native library ends this process alone.

It runs with an isolated interpreter, and imports the standard library and `xllamacpp` only.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from typing import Any, Final

HTTP_THREADS: Final = 6
"""Besides those that stream replies."""
PROMPT_BATCH: Final = 128
"""Tokens of a prompt that are read at once: a cancel, and the next token of others, wait for it."""
PROMPT_CACHE: Final = 256
"""Megabytes for earlier prompts, so that the next turn of a session reads only what is new."""
QUIET: Final = 1
"""Only errors are logged."""


def main() -> None:
    order = json.loads(sys.stdin.readline())
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the native library may print; stdout has exactly one line
    try:
        ready, server = start(order)
    except Exception as error:  # noqa: BLE001 (a library of another language may raise anything)
        ready, server = {"error": f"{type(error).__name__}: {error}"}, None
    answers.write(json.dumps(ready) + "\n")
    answers.flush()
    if server is not None:
        sys.stdin.read()
    sys.stderr.flush()
    # The library's own end waits for replies that are being generated.
    os._exit(0)


def start(order: dict[str, Any]) -> tuple[dict[str, Any], object]:
    """Load the model and serve it; return what the host needs to know, and the server."""
    sys.path.append(order["packages"])
    import xllamacpp  # noqa: PLC0415 (the order says where it is)

    library: Any = xllamacpp
    parameters = library.CommonParams()
    parameters.model.path = order["path"]
    parameters.n_parallel = order["slots"]
    parameters.n_ctx = order["slots"] * order["window"]
    parameters.n_batch = parameters.n_ubatch = PROMPT_BATCH
    parameters.cache_ram_mib = PROMPT_CACHE
    parameters.n_threads_http = order["slots"] + HTTP_THREADS
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = _threads()
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.api_keys = [order["key"]]
    parameters.ui = False
    parameters.offline = True
    parameters.fit_params = False  # it would load the model twice
    parameters.use_jinja = True
    parameters.endpoint_metrics = True
    parameters.verbosity = QUIET
    if order["temperature"] is not None:
        parameters.sampling.temp = order["temperature"]
    server = library.Server(parameters)
    address = server.listening_address
    properties = _ask(f"{address}/props", order["key"])
    ready = {
        "address": address,
        "window": properties["default_generation_settings"]["n_ctx"],
        "tools": bool(properties["chat_template_caps"]["supports_tools"]),
    }
    return ready, server


def _threads() -> int:
    """Return how many threads compute: they wait for each other, so no other process may delay one.

    With a thread for each core, a second busy process makes all of them many times slower.
    """
    return max(1, len(os.sched_getaffinity(0)) - 1 if sys.platform == "linux" else 2)


def _ask(url: str, key: str) -> dict[str, Any]:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"})  # noqa: S310 (loopback)
    # No proxy: this is a server of this process.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request) as answer:
        properties: dict[str, Any] = json.load(answer)
    return properties


if __name__ == "__main__":
    main()
