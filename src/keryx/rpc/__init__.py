"""Multiplexed calls between two processes; knows nothing of agents."""

from keryx.rpc.framing import LARGEST_FRAME, FrameError
from keryx.rpc.incoming_calls import (
    GREETED,
    METHOD_NOT_FOUND,
    Call,
    CallError,
    Handler,
    Limits,
    PeerLostError,
)
from keryx.rpc.peer import Peer
from keryx.rpc.socket_transport import Listener, connect

__all__ = [
    "GREETED",
    "LARGEST_FRAME",
    "METHOD_NOT_FOUND",
    "Call",
    "CallError",
    "FrameError",
    "Handler",
    "Limits",
    "Listener",
    "Peer",
    "PeerLostError",
    "connect",
]
