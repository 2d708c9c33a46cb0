"""Builds what a model is sent from the log. Pure: the same log gives the same prompt."""
