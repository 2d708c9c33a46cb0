"""A session's log: folded into state, written to, and picked up after a crash."""
