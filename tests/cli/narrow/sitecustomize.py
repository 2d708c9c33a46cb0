"""Loaded by Python before a command: a host that lets a session have little memory."""

from typing import Any

from keryx.sandbox.policy import Limits, Policy

_build: Any = Policy.build


def _narrow(*args: Any, **options: Any) -> Policy:
    return _build(*args, **{**options, "limits": Limits(memory=192 << 20)})


Policy.build = _narrow
