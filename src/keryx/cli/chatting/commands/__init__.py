"""What a person can type after a slash, and what it does."""
