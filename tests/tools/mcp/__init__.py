"""Tests of MCP servers and their tools, with real servers."""
