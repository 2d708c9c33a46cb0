"""The way of one message, from its POST to the last event of its answer on an open stream.

How many of our files it crosses, and how often it goes from one file to another: each function that
is entered in another file than the one before is a *switch*. A real `keryx serve` runs with a
recorder in its process; two messages warm it up, the third is recorded.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from parts.machine import model_server
from server import Api

MOST_FILES: Final = 45
MOST_SWITCHES: Final = 200
SETTLE: Final = 0.5
"""Seconds after which nothing of the messages before goes on."""
TRACED: Final = str(Path(__file__).parent / "parts" / "tracedserver.py")


@contextmanager
def traced_server(home: Path, model_url: str, record: Path) -> Generator[tuple[Api, int]]:
    env = {
        **os.environ,
        "KERYX_HOME": str(home),
        "OPENAI_BASE_URL": model_url,
        "OPENAI_API_KEY": "none",
    }
    token = subprocess.run(
        [sys.executable, "-m", "keryx", "tokens", "make", "walk"],
        env=env,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout.split()[-1]
    serve = [sys.executable, TRACED, str(record), "serve", "--port", "0", "--workspace", str(home)]
    with subprocess.Popen(serve, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = next(word for line in process.stdout for word in line.split() if "://" in word)
            yield Api(url.partition("#")[0], token), process.pid
        finally:
            process.terminate()


class Stream:
    """An open stream of one session."""

    def __init__(self, api: Api, session_id: str) -> None:
        self._connection = http.client.HTTPConnection(api.host, api.port, timeout=30)
        self._connection.request("GET", f"/api/sessions/{session_id}/events", headers=api.headers)
        self._answer = self._connection.getresponse()

    def read_until(self, event: str) -> None:
        while line := self._answer.readline():
            if line.strip() == f"event: {event}".encode():
                return
        message = f"the stream ended without {event}"
        raise ConnectionError(message)

    def close(self) -> None:
        self._connection.close()


def record_walk(api: Api, process: int, record: Path) -> list[str]:
    """The file of every function that was entered for the last message, in order."""
    view = api.ask("POST", "/api/sessions", {"model": "openai:answer-5"})
    session = view["summary"]["session_id"]
    stream = Stream(api, session)
    for _ in range(2):
        api.ask("POST", f"/api/sessions/{session}/messages", {"text": "warm up"})
        stream.read_until("turn.finished")
    time.sleep(SETTLE)
    os.kill(process, signal.SIGUSR1)
    api.ask("POST", f"/api/sessions/{session}/messages", {"text": "hello"})
    stream.read_until("turn.finished")
    os.kill(process, signal.SIGUSR1)
    while not record.exists():
        time.sleep(0.01)
    stream.close()
    return json.loads(record.read_text())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", action="store_true", help="print every file and every stretch")
    options = parser.parse_args()
    with model_server() as model, tempfile.TemporaryDirectory() as folder:
        home, record = Path(folder) / "home", Path(folder) / "walk.json"
        home.mkdir()
        with traced_server(home, model.url, record) as (api, process):
            entered = record_walk(api, process, record)
    stretches = [file for file, _ in itertools.groupby(entered)]
    if options.show:
        for file, count in Counter(stretches).most_common():
            print(f"  {count:4} {file}")
        print(" -> ".join(stretches))
    say("files that a message crosses", len(set(entered)), MOST_FILES)
    say("switches between them", len(stretches) - 1, MOST_SWITCHES)
    print(f"functions entered: {len(entered)}")
    return 0


def say(name: str, count: int, limit: int) -> None:
    print(f"{name:<34} {count:4}  limit <= {limit}: {'met' if count <= limit else 'MISSED'}")


if __name__ == "__main__":
    sys.exit(main())
