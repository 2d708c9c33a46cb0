"""Multiplexed calls between two processes; knows nothing of agents."""

from keryx.rpc.frames import LARGEST_FRAME, FrameError
from keryx.rpc.peer import Call, CallError, Peer, PeerLostError
from keryx.rpc.sockets import Listener, connect

__all__ = [
    "LARGEST_FRAME",
    "Call",
    "CallError",
    "FrameError",
    "Listener",
    "Peer",
    "PeerLostError",
    "connect",
]
