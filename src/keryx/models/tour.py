"""The model of the tour: it follows a script, and its tools are real.

It works on any machine without a key: thirteen commands at once from one script, a command that
needs consent, and then the person tries out the rest.
"""

from __future__ import annotations

import re
from typing import Final

from keryx.messages import Message, Text, ToolMessage, UserMessage, text_of
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply, history_of
from keryx.ports.model import ModelRequest

NAME: Final = "scripted:tour"
PIECE_PAUSE: Final = 0.02
"""Seconds before each piece of text, similar to a real model."""

SCRIPT: Final = '''\
from keryx_tools import parallel, terminal

REGIONS = """eu-west-1 eu-west-2 eu-central-1 eu-north-1 us-east-1 us-east-2 us-west-1 us-west-2
ap-south-1 ap-northeast-1 ap-southeast-1 sa-east-1 af-south-1""".split()


def command(number, region):
    seconds = 45 if region == "sa-east-1" else 1 + number % 4
    return f"sleep {seconds}; echo {region}: {3 + number * 7 % 11} clusters"


commands = [command(number, region) for number, region in enumerate(REGIONS)]
for region, answer in zip(REGIONS, parallel(terminal, commands, limit=13)):
    said = answer["output"].strip() if isinstance(answer, dict) else f"{region}: {answer}"
    print(said)
'''
WELCOME: Final = """\
Welcome. I am a **scripted model**: what I say is written down, but my tools are real.

I will ask thirteen regions at once, from one script. Each bar below is a command that runs right \
now, on this machine, confined to this folder. One of them, *sa-east-1*, takes much longer than \
the others: **cancel just that one** with the button on its bar, and the rest goes on.
"""
REGIONS: Final = 13
ANSWERS: Final = """\
{answers} in the time of the slowest. Run one after another they would have taken much longer: the \
line at the end of this turn will say how much.
"""
STOPPED: Final = """\
The server was stopped in the middle. {ended} had ended before that: the log kept which, and how. \
Nobody can tell how far the others got, so I do not run the script again by myself.
"""
NO_ANSWER: Final = """\
The script was stopped before a region answered. That is fine: nothing of it runs any more.
"""
CONSENT: Final = """\
Next is a command that I may not run by myself. It waits for **you**: allow it once, or deny it.
"""
FAREWELL: Final = """\
That was it. Now it is your turn:

1. Say something *while I work*: **Steer** cuts what runs and tells me at once; **Queue** waits \
its turn.
2. Kill the server with `kill -9`, start it again, and look at this page: nothing is lost, nothing \
is twice.
3. Paste a key, or choose a model server on this machine, and begin in earnest.

Say **again** to see the thirteen commands once more.
"""
RISKY: Final = 'rm -rf "$TMPDIR/keryx-tour" && echo "The folder of the tour is gone."'


def tour_model() -> ScriptedModel:
    return ScriptedModel(_reply, name=NAME)


def _reply(request: ModelRequest) -> ScriptedReply:
    history = history_of(request)
    results = _results_since_person(history)
    text = _last_user_text(history)
    if not results:
        if len(history) > 1 and "again" not in text.lower():
            return _text_reply(
                f"You said: “{text}”. I am only a script, so I leave it at that.\n\n{FAREWELL}"
            )
        call = ScriptedCall("execute_code", {"code": SCRIPT, "timeout": 120})
        return ScriptedReply(text=WELCOME, calls=[call], pause=PIECE_PAUSE)
    if len(results) == 1:
        call = ScriptedCall("terminal", {"command": RISKY})
        return ScriptedReply(
            text=f"{_report(results[0])}\n{CONSENT}", calls=[call], pause=PIECE_PAUSE
        )
    return _text_reply(FAREWELL)


def _report(result: ToolMessage) -> str:
    """Return a report of the script, from its result."""
    text = text_of(result.content)
    if text.startswith("[unknown"):
        match = re.search(r"^(\d+) nested calls", text, re.MULTILINE)
        number = 0 if match is None else int(match.group(1))
        return STOPPED.format(ended=f"{number} of the thirteen commands")
    answers = len(re.findall(r": \d+ clusters\b", text))
    if not answers:
        return NO_ANSWER
    answer_text = "Thirteen answers" if answers == REGIONS else f"{answers} of thirteen answers"
    return ANSWERS.format(answers=answer_text)


def _text_reply(text: str) -> ScriptedReply:
    return ScriptedReply(text=text, pause=PIECE_PAUSE)


def _results_since_person(history: list[Message]) -> list[ToolMessage]:
    results: list[ToolMessage] = []
    for message in reversed(history):
        if isinstance(message, UserMessage):
            break
        if isinstance(message, ToolMessage):
            results.append(message)
    return results


def _last_user_text(history: list[Message]) -> str:
    """Return the last message of the person, without the tag of the workspace."""
    for message in reversed(history):
        if isinstance(message, UserMessage):
            texts = [part.text for part in message.content if isinstance(part, Text)]
            return texts[0].partition("\n")[2].strip() if texts else ""
    return ""
