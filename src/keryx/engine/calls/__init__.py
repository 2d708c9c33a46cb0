"""One tool call: its record, the context its tool gets, its output and its outcome."""
