"""The host of a home: the one process that owns it, and the way of all others to it."""
