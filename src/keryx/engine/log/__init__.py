"""A session's log: how it is folded into state, written, and resumed after a crash."""
