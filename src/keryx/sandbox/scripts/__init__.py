"""`execute_code`: scripts that call the session's tools, each call answered to its own caller."""

from keryx.sandbox.scripts.tool import ExecuteCode

__all__ = ["ExecuteCode"]
