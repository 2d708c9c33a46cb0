"""A host for each named user of a server, and what a named user may ask for."""
