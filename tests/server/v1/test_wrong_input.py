"""Bodies that are wrong in any way get an error in OpenAI's form, and none breaks the server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keryx.server.v1.asking.bodies import ChatBody, ResponseBody
from tests.server.v1.test_kills import served

pytestmark = pytest.mark.promise("page20.34")

SLOW = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT
WORDS = st.sampled_from(
    [
        "type",
        "role",
        "content",
        "text",
        "name",
        "function",
        "parameters",
        "call_id",
        "output",
        "tool_calls",
        "tool_call_id",
        "id",
        "arguments",
        "image_url",
        "file",
        "file_data",
        "schema",
    ]
)
VALUES = st.sampled_from(
    [
        "user",
        "assistant",
        "tool",
        "system",
        "message",
        "function",
        "function_call",
        "function_call_output",
        "input_text",
        "input_image",
        "input_file",
        "json_schema",
        "reasoning",
        "x",
        "{}",
        "data:image/png;base64,AA==",
        "data:;base64,!",
        "s_0123456789abcdef.p_0123456789abcdef.0",
    ]
)
JSON = st.recursive(
    SCALARS | VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | TEXT, inner, max_size=4),
    max_leaves=10,
)
CHAT = {"model": "keryx", "messages": [{"role": "user", "content": "hello"}]}
RESPONSE = {"model": "keryx", "input": "hello"}


def changes(kind: type[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Some parameters with any value, known or not."""
    names = st.sampled_from(sorted(set(kind.__struct_fields__) - {"background"}))
    return st.dictionaries(names | TEXT, JSON, min_size=1, max_size=3)


CASES = st.one_of(
    changes(ChatBody).map(lambda changed: ("chat/completions", {**CHAT, **changed})),
    changes(ResponseBody).map(lambda changed: ("responses", {**RESPONSE, **changed})),
    st.lists(JSON, max_size=4).map(lambda said: ("chat/completions", {**CHAT, "messages": said})),
    st.lists(JSON, max_size=4).map(lambda said: ("responses", {**RESPONSE, "input": said})),
    JSON.map(lambda body: ("responses", body)),
)


def test_no_body_breaks_the_server(tmp_path: Path) -> None:
    with (
        served(tmp_path) as (client, _),
        httpx.Client(
            base_url=str(client.base_url), headers=client.auth_headers, timeout=20, trust_env=False
        ) as http,
    ):

        @settings(max_examples=60, suppress_health_check=SLOW)
        @given(case=CASES)
        def send(case: tuple[str, Any]) -> None:
            path, body = case
            data = json.dumps(body).encode()
            answer = http.post(path, content=data)
            assert answer.status_code in (200, 400, 404, 422), (answer.text, data)
            if answer.status_code != 200:
                error = answer.json()["error"]
                assert error["message"]
                assert error["type"] == "invalid_request_error"
                assert error.keys() == {"message", "type", "param", "code"}

        send()
        wrong_roles: list[Any] = [[], {}, 1, None]
        for role in wrong_roles:
            said = {"role": role, "content": [{"type": role}]}
            answer = http.post("responses", json={"model": "keryx", "input": [said]})
            assert answer.status_code == 400
        for data in (b"", b"{", b"[1]", b'"x"', b"\xff", b"[" * 100_000, b'{"model":"\\ud800"}'):
            for path in ("responses", "chat/completions"):
                answer = http.post(path, content=data)
                assert (answer.status_code, bool(answer.json()["error"])) == (400, True), data
        assert client.responses.create(model="keryx", input="hello").output_text
