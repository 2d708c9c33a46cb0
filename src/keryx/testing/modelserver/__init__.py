"""A scripted model server: real HTTP on loopback, in four APIs, strict, and faulty on demand.

    async with ModelServer([Reply(text="Hello"), Reply(fault="hang mid-stream")]) as server:
        ...  # ask server.url; look at server.asked

It runs in the caller's loop, or by itself:

    python -m keryx.testing.modelserver --port 0 --script FILE    # prints its URL

It keeps the requests, and sets events when something happens to an answer. It refuses requests
that the API does not accept, with the API's own errors.
"""

from keryx.testing.modelserver.answer import ReceivedRequest
from keryx.testing.modelserver.apis.api import RefusedError
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
