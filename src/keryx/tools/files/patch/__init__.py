"""Patches: a text of a model is parsed and changes files, all of them or none."""
