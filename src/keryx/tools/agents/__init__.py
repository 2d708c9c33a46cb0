"""Tools that run child agents, and the plan of a session."""
