"""The web: search, and pages as text."""
