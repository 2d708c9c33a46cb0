"""Memories as Markdown files that people read and edit, in `KERYX_HOME/memory`."""
