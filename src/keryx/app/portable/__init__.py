"""Sessions as files: exported whole or for people, and imported from here or from elsewhere."""
