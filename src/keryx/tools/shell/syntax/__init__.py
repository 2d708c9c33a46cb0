"""The shell's language: text in, typed values out. Knows nothing of what commands do."""

from keryx.tools.shell.syntax.grammar import LENGTH, parse
from keryx.tools.shell.syntax.nodes import ParseError, Script
from keryx.tools.shell.syntax.source import DEPTH

__all__ = ["DEPTH", "LENGTH", "ParseError", "Script", "parse"]
