"""A scripted model server: real HTTP on loopback, OpenAI-compatible, strict, and faulty on demand.

    async with ModelServer([Reply(text="Hello"), Reply(fault="hang mid-stream")]) as server:
        ...  # ask server.url; look at server.asked

It runs in the caller's loop, or by itself:

    python -m keryx.testing.modelserver --port 0 --script FILE    # prints its URL

It keeps what it was asked and tells by events what happens to each answer. It refuses whatever
the API does not take, with the API's own errors.
"""

from keryx.testing.modelserver.answer import ReceivedRequest
from keryx.testing.modelserver.rules import RefusedError
from keryx.testing.modelserver.script import Call, Fault, Reply, Script
from keryx.testing.modelserver.server import MODEL, ModelServer

__all__ = [
    "MODEL",
    "Call",
    "Fault",
    "ModelServer",
    "ReceivedRequest",
    "RefusedError",
    "Reply",
    "Script",
]
