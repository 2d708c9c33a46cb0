"""Two threads that need a decoder of one class get it one after the other.

msgspec alone kills the process here: it notes on the class what it has found out so far.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from keryx.decoding import json_decoder

SOURCE = Path(__file__).parent.parent / "src" / "keryx"
OWNER = SOURCE / "decoding.py"

# While the first thread evaluates the annotations of Inner, the second has all the time it wants.
RACE = """
import sys, threading
import msgspec
from keryx.decoding import convert, decode_json, json_decoder

evaluating, is_read = threading.Event(), threading.Event()

class Slowly:
    def __class_getitem__(cls, item):
        evaluating.set()
        is_read.wait(0.5)
        return item

class Inner(msgspec.Struct):
    number: "Slowly[int]"

class Outer(msgspec.Struct):
    inner: Inner
    number: int

def read():
    evaluating.wait()
    WAY
    is_read.set()

other = threading.Thread(target=read)
other.start()
json_decoder(Outer)
other.join()
assert is_read.is_set()
"""
WAYS = {
    "decode_json": 'decode_json(b\'{"number": 1, "inner": {"number": 2}}\', Outer)',
    "json_decoder": 'json_decoder(Outer).decode(b\'{"number": 1, "inner": {"number": 2}}\')',
    "convert": "convert({'number': 1, 'inner': {'number': 2}}, Outer)",
}


@pytest.mark.parametrize("way", WAYS)
def test_a_class_is_decoded_only_when_all_about_it_is_known(way: str) -> None:
    program = RACE.replace("WAY", WAYS[way])
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_forked_process_creates_decoders() -> None:
    pid = os.fork()
    if pid == 0:
        json_decoder(dict[str, int])
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def unprotected(file: Path) -> Iterator[str]:
    """The calls that let msgspec look into a type without the lock."""
    for node in ast.walk(ast.parse(file.read_text())):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        typed = len(node.args) > 1 or any(word.arg == "type" for word in node.keywords)
        decodes = called.startswith("msgspec.") and called.endswith(".decode") and typed
        creates = called.endswith(".Decoder") or called == "msgspec.convert"
        if decodes or creates:
            yield f"{file.relative_to(SOURCE)}:{node.lineno}: {called}"


def test_all_decoders_are_created_in_one_place() -> None:
    assert len(list(unprotected(OWNER))) == 4
    others = [call for file in SOURCE.rglob("*.py") if file != OWNER for call in unprotected(file)]
    assert others == []
