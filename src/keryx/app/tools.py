"""Which tools a host has, and what the children that they start are told of the world.

What a program passes as tools is checked here: each becomes a tool, or is refused with what to do.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from keryx.config import Config, user_home
from keryx.errors import InvalidToolError, UserMustActError
from keryx.ports.tool import Tool
from keryx.sandbox.policy import USER_SECRETS

# What programs need to find each other and to speak the person's language; nothing else.
PASSED_ON: Final = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "USER", "LOGNAME")
DEFAULT_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What the providers of models accept."""
TOOL_PARTS: Final = (
    "name",
    "description",
    "parameters",
    "isolation",
    "replay",
    "timeout",
    "container",
    "parse",
    "effects",
    "risk",
    "preview",
    "invoke",
)
"""What every tool has; see `ports/tool.py`."""


class Tools(msgspec.Struct, frozen=True):
    """The tools of a host, by name, and in sets."""

    by_name: Mapping[str, Tool] = msgspec.field(default_factory=dict[str, Tool])
    sets: Mapping[str, list[Tool]] = msgspec.field(default_factory=dict[str, list[Tool]])
    brought: bool = False
    """Whether a program brought them along."""

    @classmethod
    def of_program(cls, tools: object) -> Tools:
        """Those that a program brings along; `InvalidToolError` says which one cannot be used."""
        checked = program_tools(tools)
        return cls(_by_name(checked, {}), brought=bool(checked))

    @classmethod
    def built_in(cls, config: Config) -> Tools:
        """Those that every host has. Asks the disk."""
        # Loaded when a host wants them: a program that brings its own tools starts without.
        toolsets = importlib.import_module("keryx.tools.toolsets")
        sets = toolsets.built_in(
            user_home(config.environment), confined=config.confinement != "off"
        )
        scripts = importlib.import_module("keryx.sandbox.scripts")
        sets["code"] = [scripts.ExecuteCode()]
        return cls(_by_name([tool for tools in sets.values() for tool in tools], sets), sets)

    @property
    def brings(self) -> tuple[str, ...]:
        """What only this program has, as sessions tell of it."""
        return tuple(f"tool:{name}" for name in self.by_name) if self.brought else ()

    def chosen(self, names: Iterable[str] | None) -> tuple[str, ...]:
        """What these names stand for; None: all there are."""
        if names is None:
            return tuple(self.by_name)
        found: dict[str, None] = {}
        for name in names:
            if name in self.by_name:
                found[name] = None
            elif name in self.sets:
                found.update(dict.fromkeys(tool.name for tool in self.sets[name]))
            else:
                known = ", ".join([*sorted(self.by_name), *sorted(self.sets)])
                raise UserMustActError(f"there is no tool or toolset {name!r}; there are: {known}")
        return tuple(found)

    def granted(self, names: Iterable[str]) -> list[Tool]:
        return [self.by_name[name] for name in names if name in self.by_name]


class HostTools:
    """The tools of one host: what its program brought for its own sessions, and for all others
    what every host has, which is loaded when the first of those comes."""

    def __init__(self, own: Tools, load: Callable[[], Awaitable[Tools]]) -> None:
        self._own = own
        self._load = load
        self._built_in = None if own.brought else own

    @property
    def brings(self) -> tuple[str, ...]:
        return self._own.brings

    async def prepare(self, names: Iterable[str] | None) -> None:
        """See that these are at hand, as far as there are such tools; None: those of every host."""
        if self._built_in is None and (names is None or not self._own.by_name.keys() >= set(names)):
            self._built_in = await self._load()

    def chosen(self, names: Iterable[str] | None, *, for_others: bool = False) -> tuple[str, ...]:
        """What these names stand for, in a session of this program or of another process."""
        if not for_others or self._built_in is None:
            return self._own.chosen(names)
        return (self._built_in if names is None else self._all).chosen(names)

    def granted(self, names: Iterable[str]) -> list[Tool]:
        return self._all.granted(names)

    @property
    def _all(self) -> Tools:
        if self._built_in is None or self._built_in is self._own:
            return self._own
        return Tools({**self._built_in.by_name, **self._own.by_name}, self._built_in.sets)


def program_tools(tools: object) -> tuple[Tool, ...]:
    """What a program passes as `tools`: tools, and typed functions, which become tools here."""
    if isinstance(tools, str | bytes | Mapping) or not isinstance(tools, Iterable):
        shown = f"{tools!r:.80}"
        raise InvalidToolError(
            f"tools={shown} is no list of tools: write tools=[add], with functions or tools"
        )
    passed = cast("Iterable[object]", tools)
    return tuple(_as_tool(f"tools[{at}]", value) for at, value in enumerate(passed))


def _as_tool(where: str, value: object) -> Tool:
    if isinstance(value, type):
        raise InvalidToolError(f"{where} is the class {value.__name__}: make an object of it first")
    missing = [part for part in TOOL_PARTS if not hasattr(value, part)]
    if not missing:
        tool = cast("Tool", value)
        name = cast("object", tool.name)
        if not isinstance(name, str) or TOOL_NAME.fullmatch(name) is None:
            raise InvalidToolError(
                f"{where} is called {name!r}, which cannot be a tool's name: "
                "choose up to 64 letters, digits, `_` and `-`"
            )
        return tool
    if callable(value):
        # As a bare `@tool` would: undeclared effects, so that it runs alone.
        functions: Any = importlib.import_module("keryx.tools.function")
        return cast("Tool", functions.tool(value))
    raise InvalidToolError(
        f"{where} is {value!r:.80}, which is no tool (it has no {missing[0]}): "
        "write a typed function with a docstring, and @tool above it"
    )


def _by_name(tools: Iterable[Tool], sets: Mapping[str, object]) -> dict[str, Tool]:
    """Each tool under its own name, which nothing else has."""
    by_name: dict[str, Tool] = {}
    for tool in tools:
        other = by_name.setdefault(tool.name, tool)
        if other is not tool:
            raise InvalidToolError(
                f"two tools are called {tool.name!r}: {_origin(other)} and {_origin(tool)}; "
                'rename one of them, for instance with @tool(name="...")'
            )
        if tool.name in sets:
            raise InvalidToolError(
                f"the tool {tool.name!r} ({_origin(tool)}) has the name of a toolset; rename it"
            )
    return by_name


def _origin(tool: Tool) -> str:
    """Where a developer finds it."""
    source: Any = getattr(tool, "__wrapped__", type(tool))
    return f"{source.__module__}.{source.__qualname__}"


def secret_places(config: Config) -> list[Path]:
    """Folders and files of the user that hold secrets."""
    home = user_home(config.environment)
    return [] if home is None else [home / name for name in USER_SECRETS]


def hidden_places(config: Config) -> tuple[Path, ...]:
    """What no tool of a session may see, and nobody through one: the home, and those."""
    return (config.home, *secret_places(config))


def child_environment(config: Config, session_id: str, workspace: Path) -> dict[str, str]:
    """What the children of a session get: from an allow-list, and where they belong."""
    passed = {name: config.environment[name] for name in PASSED_ON if name in config.environment}
    return {
        "PATH": DEFAULT_PATH,
        **passed,
        "KERYX_SESSION_ID": session_id,
        "KERYX_WORKSPACE": str(workspace),
    }
