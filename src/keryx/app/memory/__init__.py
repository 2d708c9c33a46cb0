"""The memory of a home for people and programs, from any process of the home."""
