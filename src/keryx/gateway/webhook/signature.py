"""Signatures of webhook requests: HMAC-SHA256 over the time and the body.

The header is `t=SECONDS,v1=HEX`. A signature that is too old is refused, so that a request that was
overheard cannot be repeated later; the key of an update makes an early repetition harmless.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import Final

HEADER: Final = "x-keryx-signature"
OLDEST: Final = 300.0
"""Seconds that a signature is valid, before and after its time."""
_FORM: Final = re.compile(r"t=(\d{1,12}),v1=([0-9a-f]{64})")


def sign(secret: str, body: bytes, at: float) -> str:
    """Return the header's value for this body."""
    moment = str(int(at))
    return f"t={moment},v1={_digest(secret, moment, body)}"


def is_valid(secret: str, body: bytes, header: str, now: float) -> bool:
    match = _FORM.fullmatch(header)
    if match is None or abs(now - int(match[1])) > OLDEST:
        return False
    return hmac.compare_digest(match[2], _digest(secret, match[1], body))


def _digest(secret: str, moment: str, body: bytes) -> str:
    return hmac.new(secret.encode(), moment.encode() + b"." + body, hashlib.sha256).hexdigest()
