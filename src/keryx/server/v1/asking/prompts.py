"""Reads the messages or items of a request: what was said before, and what the turn is about.

Pure: JSON values in, typed values out. Both APIs become one list of messages first, which the
importer of conversations reads.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from keryx.app.portable.foreign.message_lists import Conversation, Replied, read_messages
from keryx.messages import CallAnswer, File, Image, Text, text_of, well_formed
from keryx.ports.store import Blob, blob_hash
from keryx.server.v1.api_errors import invalid

CONTINUE: Final = "Continue."
"""The message of a turn whose request ends with a reply or with results, and has none itself."""
_DATA_URL: Final = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w=.+-]+)*;base64,(.*)", re.DOTALL)
# Tuples: what a client sends as a name may be anything, also what no set could look up.
_TEXTS: Final = ("text", "input_text", "output_text", "refusal")
_INSTRUCTING: Final = ("system", "developer")
_RESULT: Final = "function_call_output"
_PLACE: Final = "$place"
"""The field of a message that says where it is in the request: errors name it."""
Message = dict[str, Any]


class Prompt(msgspec.Struct, kw_only=True):
    """What one request says."""

    instructions: str = ""
    history: Conversation = msgspec.field(default_factory=Conversation)
    """What was said before the turn; empty for a new conversation."""
    text: str = ""
    attachments: tuple[Image | File, ...] = ()
    blobs: tuple[Blob, ...] = ()
    """The contents of the attachments."""
    results: tuple[CallAnswer, ...] = ()
    """Results of the client's tools that the request ends with, under the ids of the client."""

    @property
    def has_message(self) -> bool:
        return bool(self.text or self.attachments)


class _Files:
    """The files of messages, by the index of their message."""

    def __init__(self) -> None:
        self.of_message: dict[int, list[tuple[Blob, File]]] = {}

    def add(self, index: int, data: bytes, media_type: str, name: str) -> None:
        blob = Blob(blob_hash(data), data)
        file = File(blob.hash, media_type, name)
        self.of_message.setdefault(index, []).append((blob, file))


def chat_prompt(messages: Sequence[Mapping[str, Any]]) -> Prompt:
    """Return what the messages of a chat completion say."""
    numbered = enumerate(messages)
    return _prompt([{**m, _PLACE: f"messages[{n}]"} for n, m in numbered], "messages")


def response_prompt(items: str | Sequence[Mapping[str, Any]], *, continues: bool) -> Prompt:
    """Return what the input of a response says.

    `continues`: the history is in an earlier response, so results come without their calls.
    """
    if isinstance(items, str):
        return Prompt(text=well_formed(items))
    placed = [(f"input[{number}]", item) for number, item in enumerate(items)]
    if not continues:
        return _prompt(_as_messages(placed), "input")
    results = [(place, item) for place, item in placed if item.get("type") == _RESULT]
    messages = _as_messages([pair for pair in placed if pair[1].get("type") != _RESULT])
    if any(message.get("role") == "assistant" for message in messages):
        raise invalid(
            "With `previous_response_id` the answers of the model are there already; send only "
            "what is new",
            "input",
        )
    prompt = _prompt(messages, "input") if messages else Prompt()
    prompt.results = tuple(_result(item, place) for place, item in results)
    return prompt


def _result(item: Mapping[str, Any], place: str) -> CallAnswer:
    text = _output_text(item.get("output"), f"{place}.output")
    return CallAnswer(_text(item, "call_id", place), well_formed(text))


def _text(item: Mapping[str, Any], name: str, place: str) -> str:
    value = item.get(name)
    if not isinstance(value, str):
        raise invalid(f"`{name}` must be a text", f"{place}.{name}")
    return value


def _output_text(output: object, param: str) -> str:
    if isinstance(output, str):
        return output
    texts: list[str] = []
    for part in cast("list[object]", output) if isinstance(output, list) else [None]:
        text = cast("Mapping[str, Any]", part).get("text") if isinstance(part, dict) else None
        if not isinstance(text, str):
            raise invalid("The result of a call must be text", param)
        texts.append(text)
    return "\n".join(texts)


def _as_messages(items: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Message]:
    """Return the items of a response, each with its place, as messages of a chat."""
    messages: list[Message] = []
    for place, item in items:
        kind = item.get("type", "message")
        if kind == "message":
            message = {"role": item.get("role"), "content": item.get("content")}
            messages.append({**message, _PLACE: place})
        elif kind == "function_call":
            if not messages or messages[-1]["role"] != "assistant":
                messages.append({"role": "assistant", "content": None, _PLACE: place})
            messages[-1].setdefault("tool_calls", []).append(_call(item, place))
        elif kind == _RESULT:
            answer = _result(item, place)
            message = {"role": "tool", "tool_call_id": answer.call_id, "content": answer.text}
            messages.append({**message, _PLACE: place})
        elif kind != "reasoning":  # Keryx has its own; that of a client is not needed
            raise invalid(f"Items of type {kind!r:.40} cannot be sent to Keryx", f"{place}.type")
    return messages


def _call(item: Mapping[str, Any], place: str) -> dict[str, Any]:
    item = {"arguments": "{}", **item}
    function = {name: _text(item, name, place) for name in ("name", "arguments")}
    return {"id": _text(item, "call_id", place), "type": "function", "function": function}


def _prompt(messages: list[Message], place: str) -> Prompt:
    files = _Files()
    conversation_messages: list[Message] = []
    instructions: list[str] = []
    for number, message in enumerate(messages):
        param = message[_PLACE]
        if message.get("role") in _INSTRUCTING:
            instructions.append(_output_text(message.get("content"), f"{param}.content"))
            continue
        content = _content(message.get("content"), f"{param}.content", files, number)
        conversation_messages.append({**message, "content": content, "number": number})
    prompt = Prompt(instructions="\n\n".join(map(well_formed, filter(None, instructions))))
    if not conversation_messages:
        raise invalid("There is no message of a user; send one", place)
    try:
        places = [message[_PLACE] for message in conversation_messages]
        conversation = read_messages(conversation_messages, place, places)
    except ValueError as error:
        text = str(error)
        raise invalid(text, text.split(" ", 1)[0].rstrip(":")) from error
    _divide(prompt, conversation, conversation_messages, files, place)
    return prompt


def _divide(
    prompt: Prompt,
    conversation: Conversation,
    messages: list[Message],
    files: _Files,
    place: str,
) -> None:
    """Divide the conversation into what was said before, and the messages of the turn."""
    items = conversation.items
    count = next(
        (n for n, item in enumerate(reversed(items)) if isinstance(item, Replied)), len(items)
    )
    said = items[len(items) - count :]
    conversation.items = items[: len(items) - count]
    last = conversation.items[-1] if conversation.items else None
    if isinstance(last, Replied) and last.calls:
        missing = [call.call_id for call in last.calls if call.call_id not in last.results]
        if missing:
            text = f"No tool output found for function call {missing[0][:80]}"
            raise invalid(f"{text}; send the results of all calls", place)
        prompt.results = tuple(
            CallAnswer(call_id, text_of(parts)) for call_id, parts in last.results.items()
        )
    parts = [part for item in said for part in getattr(item, "parts", ())]
    prompt.text = text_of(part for part in parts if isinstance(part, Text))
    images = [part for part in parts if isinstance(part, Image)]
    tail = messages[len(messages) - count :] if count else []
    attached = [entry for m in tail for entry in files.of_message.get(m["number"], ())]
    prompt.attachments = (*images, *(file for _, file in attached))
    wanted_hashes = {image.blob for image in images}
    prompt.blobs = (
        *(blob for blob in conversation.blobs if blob.hash in wanted_hashes),
        *(blob for blob, _ in attached),
    )
    prompt.history = conversation


def _content(content: object, param: str, files: _Files, number: int) -> Any:
    """Return the content without files, which are collected. Images are data URLs by now."""
    if not isinstance(content, list):
        return content
    parts: list[Any] = []
    for index, part in enumerate(cast("list[object]", content)):
        place = f"{param}[{index}]"
        if not isinstance(part, dict):
            raise invalid("A part of a message must be an object", place)
        part = cast("dict[str, Any]", part)
        kind = part.get("type")
        if kind in ("image_url", "input_image"):
            parts.append(_image(part, place))
        elif kind in ("file", "input_file"):
            name = _add_file(part, place, files, number)
            parts.append({"type": "text", "text": f"[file: {name}]"})
        elif kind in _TEXTS:
            parts.append(part)
        else:
            raise invalid(f"Parts of type {kind!r:.40} cannot be sent to Keryx", f"{place}.type")
    return parts


def image_url(part: object) -> str | None:
    """Return the address or data URL of an image; both APIs write it in their own way."""
    if not isinstance(part, dict):
        return None
    fields = cast("dict[str, Any]", part)
    if fields.get("type") not in ("image_url", "input_image"):
        return None
    source = fields.get("image_url")
    url = cast("dict[str, Any]", source).get("url") if isinstance(source, dict) else source
    return url if isinstance(url, str) else None


def _image(part: dict[str, Any], place: str) -> dict[str, Any]:
    url = image_url(part)
    if url is None or not url.startswith("data:image/"):
        raise invalid(
            "Send the image as a data URL (data:image/png;base64,...) or name its address "
            "(https://...)",
            f"{place}.image_url",
        )
    return {"type": "image_url", "image_url": url}


def _add_file(part: dict[str, Any], place: str, files: _Files, number: int) -> str:
    source = part.get("file", part)
    fields = cast("dict[str, Any]", source) if isinstance(source, dict) else {}
    data, name = fields.get("file_data"), fields.get("filename") or "file"
    match = _DATA_URL.fullmatch(data) if isinstance(data, str) else None
    if match is None or not isinstance(name, str):
        raise invalid(
            "Send the file itself, as a data URL in `file_data`, with its `filename`", place
        )
    try:
        content = base64.b64decode(match[2], validate=True)
    except (binascii.Error, ValueError) as error:
        raise invalid("The file is not base64", f"{place}.file_data") from error
    files.add(number, content, match[1] or "application/octet-stream", name)
    return name
