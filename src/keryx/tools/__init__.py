"""What agents can do. One file per family of tools."""
