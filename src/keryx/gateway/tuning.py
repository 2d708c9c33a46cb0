"""How fast and how patient the gateway is. The defaults fit the real platforms."""

from __future__ import annotations

import msgspec

from keryx.gateway.delivery.flood_gate import DEFAULT_PACE, Pace


class Tuning(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds, unless said otherwise."""

    pace: Pace = DEFAULT_PACE
    join_window: float = 1.0
    """How long the parts of one message are waited for."""
    request_timeout: float = 20.0
    poll_wait: float = 30.0
    """How long Telegram holds a request for updates open."""
    poll_pause: float = 1.0
    """The pause after a failed request for updates; doubled with each further one."""
