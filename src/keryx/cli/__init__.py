"""The command line. One file per command; `main` knows only their names."""
