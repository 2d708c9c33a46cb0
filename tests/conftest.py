"""What all tests share."""

from __future__ import annotations

import os

import hypothesis

pytest_plugins = ["keryx.testing.fixtures"]

SOAK = os.environ.get("KERYX_SOAK") == "1"

hypothesis.settings.register_profile("ci", max_examples=60, stateful_step_count=30, deadline=None)
hypothesis.settings.register_profile(
    "soak", max_examples=2000, stateful_step_count=80, deadline=None
)
hypothesis.settings.load_profile("soak" if SOAK else "ci")
