"""The agent itself. It meets the world only through `keryx.ports`."""
