"""A conversation for a model whose template has no tools: plain texts of two sides, in turn.

Many templates refuse two messages of the same side in succession, and all of them refuse what they
have no words for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from keryx.messages import (
    AssistantMessage,
    Message,
    Part,
    Text,
    ToolMessage,
    UserMessage,
    text_of,
)

SYSTEM: Final = (
    "You are a small language model that runs on the user's own machine. Answer briefly. "
    "You can only chat: you cannot use tools, open files or browse the web."
)
MAX_INSTRUCTIONS: Final = 2000
"""Characters of instructions, as in AGENTS.md. Longer ones would take most of the window."""

# A message of a session: what is remembered, then its workspace, then the person's own words.
_WORKSPACE: Final = re.compile(r"\[workspace: [^\n]*\]\n")


def chat_system(system: str) -> str:
    """Return the system prompt without its first paragraph, which is about tools."""
    instructions = system.partition("\n\n")[2]
    if not instructions or len(instructions) > MAX_INSTRUCTIONS:
        return SYSTEM
    return f"{SYSTEM}\n\n{instructions}"


def chat_history(messages: Iterable[Message]) -> tuple[bytes, ...]:
    """Return the messages in the form of the API, the two sides in turn."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        role, text = _side(message)
        if not text:
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += f"\n\n{text}"
        else:
            turns.append({"role": role, "content": text})
    return tuple(msgspec.json.encode(turn) for turn in turns)


def _side(message: Message) -> tuple[str, str]:
    match message:
        case UserMessage():
            return "user", _own_words(message.content)
        case AssistantMessage():
            return "assistant", text_of(message.content)
        case ToolMessage():
            return "user", f"[output of a tool]\n{text_of(message.content)}"


def _own_words(content: tuple[Part, ...]) -> str:
    """Return what the person wrote: a tiny model takes everything else for part of the question."""
    for index, part in enumerate(content):
        if isinstance(part, Text) and (tag := _WORKSPACE.match(part.text)):
            return text_of((Text(part.text[tag.end() :]), *content[index + 1 :]))
    return text_of(content)
