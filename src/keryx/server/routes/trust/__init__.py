"""The routes about trust in folders."""
