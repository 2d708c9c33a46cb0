"""Keryx runs AI agents whose work can be watched, steered, stopped and resumed at any instant.

The names below are the library; everything else is internal. They are loaded when they are
first used (PEP 562), so importing the package costs nothing.
"""

# Nothing is imported, not even `__future__`: a command cannot take care of Ctrl+C before this is
# loaded. Type checkers take this name for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any, Final

    from keryx.aio.scope import CancellationToken, get_token, is_interrupted
    from keryx.app import Keryx
    from keryx.config.schema import IN_MEMORY
    from keryx.errors import KeryxError, ToolCancelledError, ToolFailedError
    from keryx.ports.effects import EXCLUSIVE, NO_EFFECTS, Effects, reads, uses, writes
    from keryx.ports.tool import Complete, Risk
    from keryx.ports.tool_context import ToolContext
    from keryx.tools.function import tool

__all__ = [
    "EXCLUSIVE",
    "IN_MEMORY",
    "NO_EFFECTS",
    "CancellationToken",
    "Complete",
    "Effects",
    "Keryx",
    "KeryxError",
    "Risk",
    "ToolCancelledError",
    "ToolContext",
    "ToolFailedError",
    "get_token",
    "is_interrupted",
    "reads",
    "tool",
    "uses",
    "writes",
]

_HOMES: "Final" = {
    "keryx.app": ("Keryx",),
    "keryx.config.schema": ("IN_MEMORY",),
    "keryx.aio.scope": ("CancellationToken", "get_token", "is_interrupted"),
    "keryx.errors": ("KeryxError", "ToolCancelledError", "ToolFailedError"),
    "keryx.ports.effects": ("EXCLUSIVE", "NO_EFFECTS", "Effects", "reads", "uses", "writes"),
    "keryx.ports.tool": ("Complete", "Risk"),
    "keryx.ports.tool_context": ("ToolContext",),
    "keryx.tools.function": ("tool",),
}


def __getattr__(name: str) -> "Any":
    import importlib  # noqa: PLC0415 (loaded with the first name)

    for module, names in _HOMES.items():
        if name in names:
            value = getattr(importlib.import_module(module), name)
            globals()[name] = value
            return value
    raise AttributeError(f"keryx has no name {name!r}; its names are {', '.join(__all__)}")


def __dir__() -> list[str]:
    return __all__
