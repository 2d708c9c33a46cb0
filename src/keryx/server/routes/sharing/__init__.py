"""The routes about links to sessions."""
