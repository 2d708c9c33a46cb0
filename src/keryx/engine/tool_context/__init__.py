"""What a tool gets: the `ToolContext` of its call."""
