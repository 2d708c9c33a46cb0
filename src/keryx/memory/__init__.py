"""What is remembered beyond a session: the memories, their delivery to providers, and providers."""
