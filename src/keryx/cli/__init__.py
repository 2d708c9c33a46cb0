"""The command line: one module per command; `main` loads the one that is needed."""
