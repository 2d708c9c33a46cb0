"""Commands that run others: shells, interpreters, wrappers, searches, options."""
