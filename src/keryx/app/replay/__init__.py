"""Runs a recorded turn again: with its recorded replies and results, or with another model."""
