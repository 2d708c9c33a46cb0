"""Errors and ends of replies as the providers' public documentation shows them."""

from __future__ import annotations

import msgspec
import pytest

from keryx.errors import ErrorKind
from keryx.models import failures
from keryx.models.anthropic.reply import AnthropicReply
from keryx.models.gemini.reply import GeminiReply
from keryx.models.openai.reply import ChatReply
from keryx.models.responses.reply import ResponsesReply
from keryx.models.wire.replies import Reply, StreamFailedError

pytestmark = pytest.mark.promise("model.1")

SOURCE = failures.Source("p:m", "https://example.com")
OVERLOADED = b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'


@pytest.mark.parametrize(
    ("status", "body", "kind", "delay"),
    [
        (
            400,
            (
                b'{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too'
                b' long: 210000 tokens > 200000 maximum"},"request_id":"req_01"}'
            ),
            "context_too_long",
            None,
        ),
        (
            413,
            b'{"type":"error","error":{"type":"request_too_large","message":"Request exceeds"}}',
            "context_too_long",
            None,
        ),
        (
            400,
            (
                b'{"type":"error","error":{"type":"invalid_request_error","message":"Your credit'
                b' balance is too low to access the Anthropic API."}}'
            ),
            "quota",
            None,
        ),
        (529, OVERLOADED, "unreachable", 0.0),
        (
            429,
            (
                b'{"error":{"code":429,"message":"You exceeded your current quota. Please retry in '
                b'34.07s.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/'
                b'google.rpc.RetryInfo","retryDelay":"34s"}]}}'
            ),
            "rate_limit",
            34.07,
        ),
        (
            400,
            (
                b'{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.",'
                b'"status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.'
                b'ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}]}}'
            ),
            "auth",
            None,
        ),
        (
            400,
            (
                b'{"error":{"code":400,"message":"The input token count (1200000) exceeds the '
                b'maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}'
            ),
            "context_too_long",
            None,
        ),
        (
            400,
            (
                b'{"error":{"message":"Your input exceeds the context window of this model.",'
                b'"type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}'
            ),
            "context_too_long",
            None,
        ),
    ],
)
def test_documented_errors_are_of_the_right_kind(
    status: int, body: bytes, kind: ErrorKind, delay: float | None
) -> None:
    error = failures.refused(SOURCE, status, {}, body, now=0.0)
    assert (error.kind, error.retry_after) == (kind, delay)


@pytest.mark.parametrize(
    ("reply", "event", "kind"),
    [
        (AnthropicReply("s"), OVERLOADED, "unreachable"),
        (
            ResponsesReply("s"),
            (
                b'{"type":"response.failed","response":{"status":"failed","error":{"code":'
                b'"server_error","message":"The model failed to generate a response."}}}'
            ),
            "unreachable",
        ),
        (
            ResponsesReply("s"),
            b'{"type":"error","code":"rate_limit_exceeded","message":"slow down","param":null}',
            "rate_limit",
        ),
        (
            GeminiReply("s"),
            b'{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}',
            "unreachable",
        ),
        (GeminiReply("s"), b'{"promptFeedback":{"blockReason":"SAFETY"}}', "bad_response"),
        (
            GeminiReply("s"),
            (
                b'{"candidates":[{"content":{},"finishReason":"MALFORMED_FUNCTION_CALL",'
                b'"finishMessage":"Malformed function call: print(look())"}]}'
            ),
            "unreachable",
        ),
        (
            GeminiReply("s"),
            b'{"candidates":[{"content":{},"finishReason":"UNEXPECTED_TOOL_CALL"}]}',
            "unreachable",
        ),
        (
            ChatReply("s"),
            b'{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}',
            "unreachable",
        ),
        (
            ChatReply("s"),
            b'{"choices":[{"delta":{},"finish_reason":"insufficient_system_resource"}]}',
            "unreachable",
        ),
    ],
)
def test_a_documented_error_inside_a_stream_ends_the_reply(
    reply: Reply, event: bytes, kind: ErrorKind
) -> None:
    with pytest.raises(StreamFailedError) as caught:
        reply.add([event])
    assert failures.refused_in_stream(SOURCE, caught.value.problem, now=0.0).kind == kind


@pytest.mark.parametrize(
    ("reply", "event"),
    [
        (GeminiReply("s"), b'{"promptFeedback":{"blockReason":"SAFETY"}}'),
        (
            ChatReply("s"),
            (
                b'{"error":{"code":400,"message":"Provider returned error"},'
                b'"choices":[{"delta":{"content":""},"finish_reason":"error"}]}'
            ),
        ),
        (
            ResponsesReply("s"),
            (
                b'{"type":"response.failed","response":{"error":{"code":"invalid_prompt",'
                b'"message":"Your prompt was flagged."}}}'
            ),
        ),
        (
            AnthropicReply("s"),
            b'{"type":"error","error":{"type":"invalid_request_error","message":"no"}}',
        ),
    ],
)
def test_a_request_that_is_at_fault_is_not_sent_again(reply: Reply, event: bytes) -> None:
    with pytest.raises(StreamFailedError) as caught:
        reply.add([event])
    error = failures.refused_in_stream(SOURCE, caught.value.problem, now=0.0)
    assert (error.kind, error.retry_after) == ("bad_response", None)


@pytest.mark.parametrize(
    "message",
    [
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
        "Please reduce the length of the messages or completion.",
        "Invalid request: Your request exceeded model token limit: 131072",
    ],
)
def test_a_session_that_is_too_long_is_known_by_the_words_of_each_server(message: str) -> None:
    body = msgspec.json.encode({"error": {"message": message}})
    for raw in (body, b"[%b]" % body):
        assert failures.refused(SOURCE, 400, {}, raw, now=0.0).kind == "context_too_long"


@pytest.mark.parametrize(
    ("reply", "events", "reason"),
    [
        (
            AnthropicReply("s"),
            [b'{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}'],
            "length",
        ),
        (
            AnthropicReply("s"),
            [b'{"type":"message_delta","delta":{"stop_reason":"refusal"}}'],
            "content_filter",
        ),
        (
            ResponsesReply("s"),
            [
                (
                    b'{"type":"response.incomplete","response":{"status":"incomplete",'
                    b'"incomplete_details":{"reason":"max_output_tokens"}}}'
                )
            ],
            "length",
        ),
        (GeminiReply("s"), [b'{"candidates":[{"finishReason":"MAX_TOKENS"}]}'], "length"),
        (GeminiReply("s"), [b'{"candidates":[{"finishReason":"SAFETY"}]}'], "content_filter"),
    ],
)
def test_the_end_of_a_reply_has_the_same_words_in_every_format(
    reply: Reply, events: list[bytes], reason: str
) -> None:
    reply.add(events)
    assert (reply.is_complete, reply.stop_reason) == (True, reason)
