"""Beside the turns: what people do in a session by themselves, and what is done for them."""
