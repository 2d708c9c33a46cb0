"""Markdown as text with formatted spans, split to fit the limit of a platform."""
