"""Conversations from elsewhere: lists of messages, and sessions of hermes-agent."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from keryx import IN_MEMORY, Keryx
from keryx import events as ev
from keryx.app.portable.foreign.message_lists import Conversation
from keryx.app.portable.formats import read_file
from keryx.app.portable.importing import Imported, import_file
from keryx.errors import UserMustActError
from keryx.messages import AssistantMessage, ToolMessage, UserMessage, text_of
from keryx.models.scripted import ScriptedModel, ScriptedReply, history_of
from tests.app.hosts import check_log
from tests.app.portable.test_round_trip import PNG

pytestmark = pytest.mark.promise("model.6")

IMAGE = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"


def call(call_id: str, tool: str = "web_search", arguments: Any = '{"q": "x"}') -> dict[str, Any]:
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": tool, "arguments": arguments},
    }


MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "You are a pirate."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "Look at this"},
            {"type": "image_url", "image_url": {"url": IMAGE}},
        ],
    },
    {"role": "assistant", "content": None, "tool_calls": [call("a"), call("b")]},
    {"role": "tool", "tool_call_id": "b", "content": "second"},
    {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "first"}]},
    {"role": "assistant", "content": "A dot.", "reasoning": "It is small."},
    {"role": "user", "content": "Again"},
    {"role": "assistant", "content": "", "tool_calls": [call("a")]},
]
"""The id of a call is used twice, and the last call has no result."""
HERMES = {
    "id": "20260101_120000_abc",
    "source": "cli",
    "model": "anthropic/claude",
    "title": "Dots",
    "started_at": 1_700_000_000.5,
    "system_prompt": "You are Hermes.",
    "messages": [{**message, "timestamp": 1.0, "id": 1} for message in MESSAGES],
}
TRAJECTORY = {
    "conversations": [
        {"from": "system", "value": "You are a function calling model."},
        {"from": "human", "value": "Search"},
        {
            "from": "gpt",
            "value": "<think>\nHm.\n</think>\nI search.\n<tool_call>\n"
            '{"name": "web_search", "arguments": {"q": "x"}}\n</tool_call>\n<tool_call>\n'
            '{"name": "web_extract", "arguments": {}}\n</tool_call>',
        },
        {
            "from": "tool",
            "value": '<tool_response>\n{"r": 1}\n</tool_response>\n'
            "<tool_response>\ntwo\n</tool_response>",
        },
        {"from": "gpt", "value": "<think>\n</think>\nHere."},
    ],
    "model": "hermes-4",
    "completed": True,
}


async def go_on(file: Path, content: str) -> tuple[list[Imported], ScriptedModel, Any]:
    """Import the file, and continue its last session."""
    file.write_text(content)  # noqa: ASYNC240 (a test with one loop)
    model = ScriptedModel(lambda _: ScriptedReply(text="Going on."), sees_images=True)
    async with Keryx(home=IN_MEMORY, model=model, workspace=file.parent) as app:
        imported = await import_file(app, file, str(file.parent))
        session = await app.open(imported[-1].session_id)
        result = await (await session.send("Go on")).result()
        assert result.text == "Going on."
        log = await app.store.events(session.session_id)
        row = await app.store.session(session.session_id)
    check_log(log)
    return imported, model, row


def dots(model: ScriptedModel) -> None:
    """The model gets the whole conversation of `MESSAGES`."""
    said, calls, first, second, replied, again, last, missing, now = history_of(model.asked[0])
    assert isinstance(said, UserMessage)
    assert "Look at this" in text_of(said.content)
    assert isinstance(calls, AssistantMessage)
    assert [c.tool for c in calls.calls] == ["web_search", "web_search"]
    assert isinstance(first, ToolMessage)
    assert isinstance(second, ToolMessage)
    assert [first.call_id, second.call_id] == [c.call_id for c in calls.calls]
    assert "first" in text_of(first.content)
    assert "second" in text_of(second.content)
    assert isinstance(replied, AssistantMessage)
    assert text_of(replied.content) == "A dot."
    assert isinstance(again, UserMessage)
    assert isinstance(last, AssistantMessage)
    assert isinstance(missing, ToolMessage)
    assert isinstance(now, UserMessage)
    ids = [c.call_id for c in (*calls.calls, *last.calls)]
    assert len(set(ids)) == 3
    assert "pirate" not in str(model.asked[0])


async def test_a_list_of_messages_becomes_a_session_that_goes_on(tmp_path: Path) -> None:
    imported, model, row = await go_on(tmp_path / "m.json", json.dumps(MESSAGES))
    dots(model)
    assert [session.left_out for session in imported] == [1]
    assert row.title == "Look at this"


async def test_messages_may_stand_on_lines(tmp_path: Path) -> None:
    lines = "\n".join(map(json.dumps, MESSAGES))
    _, model, _ = await go_on(tmp_path / "m.jsonl", lines + "\n\n")
    dots(model)


async def test_a_session_of_hermes_agent_keeps_title_time_and_model(tmp_path: Path) -> None:
    imported, model, row = await go_on(tmp_path / "h.json", json.dumps(HERMES))
    dots(model)
    assert (row.title, row.created_at) == ("Dots", 1_700_000_000.5)
    assert len(imported) == 1


@pytest.mark.parametrize(
    ("started", "at"),
    [(1_700_000_000_500, 1_700_000_000.5), (1e300, None), (-5, None), ("9999-12-31", None)],
)
def test_a_time_that_cannot_be_shown_is_not_taken(started: object, at: float | None) -> None:
    content = json.dumps({"messages": MESSAGES[-1:], "started_at": started})
    conversation = read_file(content.encode(), "s.json")[0]
    assert isinstance(conversation, Conversation)
    assert conversation.at == at


async def test_many_sessions_of_hermes_agent_are_imported_from_one_file(tmp_path: Path) -> None:
    both = [HERMES, {**HERMES, "title": "More dots", "session_start": "2026-01-01T10:00:00"}]
    imported, model, row = await go_on(tmp_path / "h.jsonl", "\n".join(map(json.dumps, both)))
    dots(model)
    assert len({session.session_id for session in imported}) == 2
    assert row.title == "More dots"


async def test_a_trajectory_of_hermes_agent_has_calls_results_and_reasoning(tmp_path: Path) -> None:
    _, model, _ = await go_on(tmp_path / "t.jsonl", json.dumps(TRAJECTORY))
    said, calls, one, two, replied, _ = history_of(model.asked[0])
    assert isinstance(said, UserMessage)
    assert isinstance(calls, AssistantMessage)
    assert text_of(calls.content) == "I search."
    assert [c.tool for c in calls.calls] == ["web_search", "web_extract"]
    assert isinstance(one, ToolMessage)
    assert isinstance(two, ToolMessage)
    assert ('{"r": 1}' in text_of(one.content), "two" in text_of(two.content)) == (True, True)
    assert isinstance(replied, AssistantMessage)
    assert text_of(replied.content) == "Here."


async def test_the_events_of_an_export_can_be_imported_if_nothing_is_missing(
    tmp_path: Path,
) -> None:
    model = ScriptedModel(lambda _: ScriptedReply(text="Hi."))
    async with Keryx(home=IN_MEMORY, model=model, workspace=tmp_path) as app:
        session = await app.open()
        await (await session.send("Hello")).result()
        log = await app.store.events(session.session_id)
    lines = b"\n".join(map(ev.encode, log))
    imported, again, _ = await go_on(tmp_path / "e.jsonl", lines.decode())
    assert imported[0].session_id == session.session_id
    assert "Hi." in str(again.asked[0].history)


BROKEN: dict[str, tuple[Any, str]] = {
    "empty": (b"", "it is empty"),
    "no json": (b"hello", "it is not valid JSON"),
    "no utf-8": (b'"\xff"', "it is not"),
    "a number": (b"7", "it is no session"),
    "another object": ({"a": 1}, "it is no session; it must be a JSON export of Keryx"),
    "a broken database": (b"SQLite format 3\0...", "the database cannot be read"),
    "an empty list": ([], "no message of a person"),
    "only instructions": ([{"role": "system", "content": "x"}], "no message of a person"),
    "a line": (b'{"role": "user", "content": "x"}\n{"role": \n', "line 2 is not valid JSON"),
    "a role": ([{"role": "pirate"}], r"messages\[0\].role is 'pirate'"),
    "no object": ([{"role": "user", "content": "x"}, 7], r"messages\[1\] must be an object"),
    "content": ([{"role": "user", "content": 7}], r"messages\[0\].content must be a list"),
    "a part": (
        [{"role": "user", "content": [{"type": "audio"}]}],
        r"messages\[0\].content\[0\].type is 'audio'",
    ),
    "an image": (
        [
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": "data:image/png;base64,%"}],
            }
        ],
        r"content\[0\].image_url: the image is not base64",
    ),
    "a call without a name": (
        [{"role": "assistant", "tool_calls": [{"id": "a", "function": {}}]}],
        r"messages\[0\].tool_calls\[0\].function.name must be a text",
    ),
    "two calls of one id": (
        [{"role": "assistant", "tool_calls": [call("a"), call("a")]}],
        "two calls have the same id",
    ),
    "a result of nothing": (
        [{"role": "user", "content": "x"}, {"role": "tool", "tool_call_id": "z", "content": "y"}],
        r"messages\[1\] is the result of the call 'z'",
    ),
    "two results": (
        [
            {"role": "assistant", "tool_calls": [call("a")]},
            *[{"role": "tool", "tool_call_id": "a", "content": "y"}] * 2,
        ],
        r"messages\[2\]: the call 'a' has a result already",
    ),
    "a session among sessions": (
        [HERMES, {**HERMES, "messages": 7}],
        r"sessions\[1\].messages must be a list",
    ),
    "a voice": ({"conversations": [{"from": "bird", "value": "x"}]}, "from is 'bird'"),
    "a call of a trajectory": (
        {"conversations": [{"from": "gpt", "value": "<tool_call>{</tool_call>"}]},
        r"conversations\[0\].value: tool call 1",
    ),
    "results of a trajectory": (
        {"conversations": [{"from": "human", "value": "x"}, {"from": "tool", "value": "y"}]},
        "1 results for 0 calls",
    ),
    "depth": (b"[" * 5000 + b"]" * 5000, "nothing was imported"),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_what_cannot_be_read_is_named_with_its_place_and_nothing_is_imported(
    name: str, tmp_path: Path
) -> None:
    content, place = BROKEN[name]
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    (tmp_path / "f.json").write_bytes(data)
    async with Keryx(home=IN_MEMORY, model="scripted:demo") as app:
        with pytest.raises(UserMustActError, match=place) as caught:
            await import_file(app, tmp_path / "f.json", str(tmp_path))
        assert await app.store.sessions(parent=None, archived=None) == []
    assert "f.json: " in str(caught.value)
    assert "nothing was imported" in str(caught.value)


async def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    async with Keryx(home=IN_MEMORY, model="scripted:demo") as app:
        for path in (tmp_path / "absent.json", tmp_path):
            with pytest.raises(UserMustActError, match="cannot be read"):
                await import_file(app, path, str(tmp_path))


def test_arguments_as_objects_and_lone_surrogates_are_read() -> None:
    value = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": "y", "tool_calls": [call("a", arguments={"q": 1})]},
    ]
    (conversation,) = read_file(json.dumps(value).encode(), "f")
    assert '{"q":1}' in str(conversation)


def archive(content: bytes, compression: int = zipfile.ZIP_DEFLATED, name: str = "a.json") -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as file:
        file.writestr(name, content)
    return stream.getvalue()


def test_an_archive_of_sessions_is_read() -> None:
    assert len(read_file(archive(json.dumps(HERMES).encode()), "a.zip")) == 1


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_unusual_compression_is_refused_before_it_is_opened(compression: int) -> None:
    """What these raise when they are damaged is no error of archives, and LZMA names its memory."""
    data = bytearray(archive(json.dumps(HERMES).encode(), compression))
    data[40:60] = b"\xff" * 20
    with pytest.raises(UserMustActError, match=r"a\.zip: a\.json .* unusual way.*with deflate"):
        read_file(bytes(data), "a.zip")


@pytest.mark.parametrize("name", ["folder/", ""])
def test_an_archive_without_files_is_refused(name: str) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        if name:
            file.mkdir(name)
    with pytest.raises(UserMustActError, match="the archive holds no file"):
        read_file(stream.getvalue(), "a.zip")


def test_a_time_that_no_number_can_hold_is_no_time() -> None:
    started = json.dumps(HERMES).replace("1700000000.5", "1" + "0" * 400)
    (conversation,) = read_file(started.encode(), "a.json")
    assert isinstance(conversation, Conversation)
    assert (conversation.title, conversation.at) == ("Dots", None)
