"""Sessions as files."""
