"""An alarm of the script may come at any instruction of a call: nothing is lost or left open."""

from __future__ import annotations

from pathlib import Path

from tests.guest.script_processes import run
from tests.guest.server import Server

# The exception is raised at the first instruction of a call, then at the second of the next call,
# and so on until a call comes through: every place where a signal handler can raise. Each call has
# a thread, so that it opens a connection. What warns of something left open goes to stderr, where
# `run` finds it.
EVERY_INSTRUCTION = """
import json, sys, threading
from keryx_tools import echo

class Alarm(Exception):
    pass

def call_interrupted_at(instruction, answers):
    left = instruction

    def trace(frame, event, _):
        nonlocal left
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left == 0:
                raise Alarm
        return trace

    sys.settrace(trace)
    try:
        answers.append(echo(f"call {instruction}")["tag"])
    except Alarm:
        pass
    finally:
        sys.settrace(None)
    assert echo("the next")["tag"] == "the next"

echo("what is made once")
tried, answers = 0, []
while not answers:
    tried += 1
    thread = threading.Thread(target=call_interrupted_at, args=(tried, answers))
    thread.start()
    thread.join()
print(json.dumps([tried, *answers]))
"""


def test_a_call_can_be_given_up_at_every_instruction(
    tmp_path: Path, server: Server, address: str
) -> None:
    tried, answer = run(tmp_path, EVERY_INSTRUCTION, address, patience=60)
    assert answer == f"call {tried}"
    assert tried > 100
    server.wait_idle()
