"""The parser of the shell language: text in, typed values out. It knows nothing of commands."""

from keryx.tools.shell.syntax.grammar import MAX_LENGTH, parse
from keryx.tools.shell.syntax.nodes import ParseError, Script
from keryx.tools.shell.syntax.source import MAX_DEPTH

__all__ = ["MAX_DEPTH", "MAX_LENGTH", "ParseError", "Script", "parse"]
