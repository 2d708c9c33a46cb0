"""Read-only links to sessions, for people without a login."""
