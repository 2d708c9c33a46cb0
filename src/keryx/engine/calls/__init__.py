"""One tool call and what surrounds it: its record, its context, its place, its outcome."""
