"""The guides of `docs/guides`, followed to the letter."""
