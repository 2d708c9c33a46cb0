"""Patches: from a text that a model wrote to files that are changed, all of them or none."""
