"""Tools of MCP servers: which servers there are, what they offer, and how their tools are called.

Only the modules in `wire` import the `mcp` package; they are loaded when a server is first used.
"""
