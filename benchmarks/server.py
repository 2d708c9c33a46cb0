"""The server: how old a token is when its reader gets it, what streams cost, and the list.

The model server stamps each token with the time at which it is sent, 20 a second for each session,
and a reader in a process of its own looks at the clock when the token arrives. The *floor* is a
bare relay on the same web server: it asks the model and passes on what comes, with no session, no
log and no login. Model server and readers share one core, what is measured has the other.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from parts.machine import Server, model_server
from parts.manysessions import fill

SESSIONS: Final = (1, 50, 200)
TOKENS: Final = 160
IDLE: Final = 1_000
LISTED: Final = 10_000
BENCHMARKS: Final = Path(__file__).parent
OTHER_CORE: Final = str(max(os.sched_getaffinity(0))) if hasattr(os, "sched_setaffinity") else "0"


class Api:
    """The API of one server, with a token."""

    def __init__(self, url: str, token: str) -> None:
        self.host, _, port = url.removeprefix("http://").rstrip("/").partition(":")
        self.port = int(port)
        self.headers = {"Host": f"{self.host}:{self.port}", "Authorization": f"Bearer {token}"}
        self._url = url.rstrip("/")

    def ask(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else msgspec.json.encode(body)
        request = urllib.request.Request(self._url + path, data, self.headers, method=method)
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=30) as answer:
            data = answer.read()
        return json.loads(data) if data else None


@contextmanager
def keryx(home: Path, model: Server) -> Generator[tuple[Api, int]]:
    """Start a server as a person does; yield it and the id of its process."""
    env = {
        **os.environ,
        "KERYX_HOME": str(home),
        "OPENAI_BASE_URL": model.url,
        "OPENAI_API_KEY": "none",
    }
    command = [sys.executable, "-m", "keryx"]
    process = subprocess.run(
        [*command, "tokens", "make", "benchmark"], env=env, check=True, stdout=subprocess.PIPE
    )
    token = process.stdout.decode().split()[-1]
    serve = [*command, "serve", "--port", "0", "--workspace", str(home)]
    with subprocess.Popen(serve, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = next(word for line in process.stdout for word in line.split() if "://" in word)
            yield Api(url.partition("#")[0], token), process.pid
        finally:
            process.terminate()


@contextmanager
def relay(model: Server) -> Generator[Api]:
    """Start the floor: a bare relay."""
    command = [sys.executable, "-m", "uvicorn", "parts.barerelay:app", "--port", "0"]
    command += ["--http", "httptools", "--loop", "uvloop", "--no-access-log"]
    env = {**os.environ, "MODEL_URL": model.url, "PYTHONPATH": str(BENCHMARKS)}
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            line = next(line for line in process.stderr if "running on" in line)
            yield Api(next(word for word in line.split() if word.startswith("http://")), "")
        finally:
            process.terminate()


@contextmanager
def reading(api: Api, paths: Sequence[str], stamps: int) -> Generator[subprocess.Popen[str]]:
    """Start readers in another process, and wait until their streams are open."""
    options = {"host": api.host, "port": api.port, "headers": api.headers, "paths": list(paths)}
    command = [sys.executable, str(BENCHMARKS / "parts" / "streamreader.py"), OTHER_CORE]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({**options, "stamps": stamps}) + "\n")
        process.stdin.flush()
        if stamps == 0 or "/events" in paths[0]:
            assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.stdin.close()


def ages_of(process: subprocess.Popen[str]) -> list[int]:
    assert process.stdout is not None
    line = process.stdout.readline()
    ages = json.loads(line if line.startswith("[") else process.stdout.readline())
    return ages[len(ages) // 4 :]  # while streams are being opened, more goes on than streaming


def of_floor(api: Api, count: int) -> list[int]:
    paths = [f"/stamp-{TOKENS}"] * count
    with reading(api, paths, count * (TOKENS - 5)) as process:
        return ages_of(process)


def of_keryx(api: Api, count: int) -> list[int]:
    model = {"model": f"openai:stamp-{TOKENS}"}
    ids = [api.ask("POST", "/api/sessions", model)["summary"]["session_id"] for _ in range(count)]
    paths = [f"/api/sessions/{session_id}/events" for session_id in ids]
    with reading(api, paths, count * (TOKENS - 5)) as process:
        for session_id in ids:
            api.ask("POST", f"/api/sessions/{session_id}/messages", {"text": "hi"})
        return ages_of(process)


def percentile(ages: list[int], part: float) -> float:
    return sorted(ages)[min(len(ages) - 1, int(len(ages) * part))] / 1000


def resident(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def latency(api: Api, floor: Api) -> None:
    for count in SESSIONS:
        bare, ours = of_floor(floor, count), of_keryx(api, count)
        texts = [f"{percentile(ages, part):7.2f}" for part in (0.5, 0.99) for ages in (ours, bare)]
        ratio = percentile(ours, 0.5) / percentile(bare, 0.5)
        print(
            f"{count:4} sessions: token to reader, p50 {texts[0]} ms (floor {texts[1]}), "
            f"p99 {texts[2]} ms (floor {texts[3]}), {ratio:.2f} x the floor"
        )


def idle_streams(api: Api, pid: int) -> None:
    session = api.ask("POST", "/api/sessions", {})["summary"]["session_id"]
    path = f"/api/sessions/{session}/events"
    with reading(api, [path] * 50, 0):  # what is made once is made by these
        before = resident(pid)
        with reading(api, [path] * IDLE, 0):
            kilobytes = (resident(pid) - before) / IDLE / 1000
    verdict = "met" if kilobytes <= 30 else "MISSED"
    print(f"{IDLE:,} idle streams: {kilobytes:.1f} KB each  at most 30: {verdict}")


def listing(api: Api) -> None:
    took: list[float] = []
    for _ in range(20):
        began = time.perf_counter()
        rows = api.ask("GET", "/api/sessions?limit=50")["sessions"]
        took.append(time.perf_counter() - began)
        assert len(rows) == 50
    first = statistics.median(took) * 1e3
    began, whole, path = time.perf_counter(), 0, "/api/sessions?limit=200"
    while path:
        page = api.ask("GET", path)
        whole += len(page["sessions"])
        path = f"/api/sessions?limit=200&before={page['next']}" if page["next"] else ""
    all_of_them = (time.perf_counter() - began) * 1e3
    verdict = "met" if first <= 50 else "MISSED"
    print(f"list of {LISTED:,} sessions: first page {first:.1f} ms  at most 50: {verdict}")
    print(f"    all {whole:,} of them, in pages of 200: {all_of_them:.0f} ms")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, model_server() as model:
        with relay(model) as floor, keryx(Path(folder, "home"), model) as (api, pid):
            latency(api, floor)
            idle_streams(api, pid)
        fill(Path(folder, "many"), LISTED)
        with keryx(Path(folder, "many"), model) as (api, _):
            listing(api)


if __name__ == "__main__":
    main()
