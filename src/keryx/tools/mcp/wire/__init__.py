"""The parts that speak MCP. They import the `mcp` package, so they are loaded on first use."""
