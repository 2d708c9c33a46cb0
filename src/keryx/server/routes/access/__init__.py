"""The routes about who may use the server."""
