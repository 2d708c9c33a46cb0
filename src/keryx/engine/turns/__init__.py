"""A turn: its loop, its streaming reply, the facts that it logs, and the hooks of its calls."""
