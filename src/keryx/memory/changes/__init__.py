"""What people and consolidation do to memories: list, correct, confirm, merge, forget."""
