"""Tools for what is remembered beyond a session: `memory`, `conclude` and `recall`."""
