"""Commands with subcommands, and those that talk to servers."""
