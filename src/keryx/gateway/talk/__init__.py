"""Turns what people write and press into commands, and the events of sessions into messages."""
