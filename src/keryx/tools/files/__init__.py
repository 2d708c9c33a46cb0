"""The file tools: read, write, patch, search and list, all within a session's own files."""

from keryx.ports.tool import Tool
from keryx.tools.files.file_access import FileAccess
from keryx.tools.files.listing import list_files
from keryx.tools.files.patch.tool import patch
from keryx.tools.files.reading import read_file
from keryx.tools.files.searching import search_files
from keryx.tools.files.writing import write_file

__all__ = [
    "FileAccess",
    "file_tools",
    "list_files",
    "patch",
    "read_file",
    "search_files",
    "write_file",
]


def file_tools() -> list[Tool]:
    """Return all file tools."""
    return [read_file, write_file, patch, search_files, list_files]
