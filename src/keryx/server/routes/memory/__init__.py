"""The routes about what is remembered beyond sessions."""
