"""The tools of a host, and the environment of the child processes that they start.

The tools that a program passes are checked here: each is accepted, or refused with what to do.
"""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from keryx.app.skill_folders import skill_folders
from keryx.config import DEFAULT, Config, user_home
from keryx.errors import InvalidToolError, UserMustActError
from keryx.ports.tool import Tool, aliases_of, find_named
from keryx.sandbox.policy import USER_SECRETS

# Commands need these to find each other and to use the person's language; they get no others.
PASSED_ON: Final = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "USER", "LOGNAME")
DEFAULT_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
OWN: Final = "own"
"""The set of the user's own tools."""
TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""The tool names that all model providers accept."""
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
"""The attributes of every tool; see `ports/tool.py`."""


class Tools(msgspec.Struct, frozen=True):
    """The tools of a host, by name, and in sets."""

    by_name: Mapping[str, Tool] = msgspec.field(default_factory=dict[str, Tool])
    sets: Mapping[str, list[Tool]] = msgspec.field(default_factory=dict[str, list[Tool]])
    from_program: bool = False
    """Whether a program passed these tools."""
    named: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict[str, tuple[str, ...]])
    """Sets that the configuration names: names of tools and of sets. None contains itself."""
    servers: tuple[str, ...] = ()
    """The MCP servers; their tools are known once they are listed."""

    @classmethod
    def of_program(cls, tools: object) -> Tools:
        """Check the tools that a program passes; `InvalidToolError` names an invalid one."""
        checked = program_tools(tools)
        return cls(_by_name(checked, {}), from_program=bool(checked))

    @classmethod
    def built_in(cls, config: Config) -> Tools:
        """Return the tools that every host has. Reads the disk."""
        # Imported only here: a program that passes its own tools starts faster.
        toolsets = importlib.import_module("keryx.tools.toolsets")
        sets = toolsets.built_in(
            user_home(config.environment),
            confined=config.confinement != "off",
            web=_web_settings(toolsets, config),
            media=_media_settings(toolsets, config),
            skills=skill_folders(config, DEFAULT),
            memory=bool(config.memory.providers),
        )
        scripts = importlib.import_module("keryx.sandbox.scripts")
        sets["code"] = [scripts.ExecuteCode()]
        by_name = _by_name([tool for tools in sets.values() for tool in tools], sets)
        return cls(by_name, sets, servers=tuple(config.mcp.servers))

    @staticmethod
    def missing(config: Config) -> tuple[str, ...]:
        """Return what the built-in tools need that cannot work here. Reads the disk."""
        toolsets = importlib.import_module("keryx.tools.toolsets")
        needs: tuple[str, ...] = toolsets.missing(
            user_home(config.environment),
            confined=config.confinement != "off",
            web=_web_settings(toolsets, config),
            media=_media_settings(toolsets, config),
        )
        return needs

    @property
    def capabilities(self) -> tuple[str, ...]:
        """Return the tools that only this program has, as `tool:NAME`."""
        return tuple(f"tool:{name}" for name in self.by_name) if self.from_program else ()

    def chosen(self, names: Iterable[str] | None) -> tuple[str, ...]:
        """Return the names of tools for these names of tools and toolsets; None: all tools."""
        if names is None:
            return tuple(self.by_name)
        tool_names: dict[str, None] = {}
        names = tuple(names)
        for name in _expanded(names, self.named):
            if (tool := find_named(self.by_name, name)) is not None:
                tool_names[tool.name] = None
            elif name in self.sets:
                tool_names.update(dict.fromkeys(tool.name for tool in self.sets[name]))
            elif any(_is_of_server(name, server) for server in self.servers):
                tool_names[name] = None
            elif name in names or not self.knows(name):
                self.check_usable(name)
                available = [*sorted(self.by_name), *sorted(self.sets), *sorted(self.named)]
                close = difflib.get_close_matches(name, available, n=1)
                hint = f" did you mean {close[0]!r}?" if close else ""
                raise UserMustActError(
                    f"there is no tool or toolset {name!r};{hint} "
                    f"choose one of: {', '.join(available)}"
                )
        return tuple(tool_names)

    def check_usable(self, name: str) -> None:
        """Raise `UserMustActError` if this is a built-in tool or set that cannot work here."""
        is_here = find_named(self.by_name, name) is not None or name in self.sets
        if not (is_here or self.from_program) and name in _optional():
            raise UserMustActError(
                f"{name!r} cannot be used here: something that it needs is not installed, or not "
                "configured; `keryx doctor` says what. What remembers needs a provider in [memory]"
            )

    def usable(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return these names without those of tools that cannot work here."""
        return tuple(
            name
            for name in names
            if name in self.by_name or name in self.sets or name not in _optional()
        )

    def knows(self, name: str) -> bool:
        """Return whether this is the name of a tool or a set, also of one that cannot work here."""
        if name in self.by_name or name in self.sets or name in self.named:
            return True
        if self.from_program:
            return False
        if name == OWN or name in _optional():
            return True
        return any(_is_of_server(name, server) for server in self.servers)

    def with_sets(self, named: Mapping[str, tuple[str, ...]]) -> Tools:
        """Return these tools with sets that a person named."""
        return msgspec.structs.replace(self, named=named)

    def plus(self, toolset: str, tools: Mapping[str, Tool]) -> Tools:
        """Return these tools and one more set, none of whose names is used here."""
        if not tools:
            return self
        by_name, sets = {**self.by_name, **tools}, {**self.sets, toolset: [*tools.values()]}
        return msgspec.structs.replace(self, by_name=by_name, sets=sets)

    def granted(self, names: Iterable[str]) -> list[Tool]:
        return [self.by_name[name] for name in names if name in self.by_name]


def _optional() -> frozenset[str]:
    names: frozenset[str] = importlib.import_module("keryx.tools.toolsets").OPTIONAL
    return names


def _expanded(names: Iterable[str], sets: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return the names with each named set replaced by its members."""
    result: dict[str, None] = {}
    for name in names:
        members = _expanded(sets[name], sets) if name in sets else (name,)
        result.update(dict.fromkeys(members))
    return [*result]


def _is_of_server(name: str, server: str) -> bool:
    """Return whether the name stands for an MCP server, or for one of its tools."""
    return name == f"mcp_{server}" or name.startswith(f"mcp_{server}_")


def program_tools(tools: object) -> tuple[Tool, ...]:
    """Return what a program passes as `tools` as tools: typed functions are converted."""
    if isinstance(tools, str | bytes | Mapping) or not isinstance(tools, Iterable):
        text = f"{tools!r:.80}"
        raise InvalidToolError(
            f"tools={text} is not a list of tools; write tools=[add], with functions or tools"
        )
    passed = cast("Iterable[object]", tools)
    return tuple(as_tool(f"tools[{at}]", value) for at, value in enumerate(passed))


def as_tool(where: str, value: object) -> Tool:
    """Return this value as a tool; a typed function is converted. `where` is for the error."""
    if isinstance(value, type):
        raise InvalidToolError(
            f"{where} is the class {value.__name__}, not a tool; pass an object of that class"
        )
    missing = [part for part in TOOL_PARTS if not hasattr(value, part)]
    if not missing:
        tool = cast("Tool", value)
        name = cast("object", tool.name)
        if not isinstance(name, str) or TOOL_NAME.fullmatch(name) is None:
            raise InvalidToolError(
                f"{where} is called {name!r}, which model providers refuse as the name of a tool; "
                "use 1 to 64 letters, digits, `_` and `-`"
            )
        return tool
    if callable(value):
        # As with a bare `@tool`: the effects are not declared, so it runs alone.
        functions: Any = importlib.import_module("keryx.tools.function")
        return cast("Tool", functions.tool(value))
    raise InvalidToolError(
        f"{where} is {value!r:.80}, which is not a tool (it has no {missing[0]}); "
        "pass a typed function with a docstring, and @tool above it"
    )


def _web_settings(toolsets: Any, config: Config) -> Any:
    web = config.tools.web
    return toolsets.WebSettings(
        backend=web.backend,
        searxng_url=web.searxng_url,
        brave_api_key=web.brave_api_key,
        tavily_api_key=web.tavily_api_key,
        allow_private=web.allow_private,
    )


def _media_settings(toolsets: Any, config: Config) -> Any:
    purposes = {
        purpose
        for profile in config.profiles.values()
        for purpose, model in profile.auxiliary.items()
        if model
    }
    return toolsets.MediaSettings(
        image="image" in purposes,
        speech="speech" in purposes,
        transcription="transcription" in purposes,
        search_path=config.environment.get("PATH", DEFAULT_PATH),
        piper_voice=config.tools.speech.piper_voice,
        allow_private=config.tools.web.allow_private,
    )


def _by_name(tools: Iterable[Tool], sets: Mapping[str, object]) -> dict[str, Tool]:
    """Return the tools by name; `InvalidToolError` if a name or an alias is used twice."""
    by_name: dict[str, Tool] = {}
    names: dict[str, Tool] = {}
    for tool in tools:
        for name in (tool.name, *aliases_of(tool)):
            first = names.setdefault(name, tool)
            if first is not tool:
                raise InvalidToolError(
                    f"two tools are called {name!r}: {_origin(first)} and {_origin(tool)}; "
                    'rename one of them, for instance with @tool(name="...")'
                )
            if name in sets:
                raise InvalidToolError(
                    f"the tool {name!r} ({_origin(tool)}) has the name of a toolset; rename it"
                )
        by_name[tool.name] = tool
    return by_name


def _origin(tool: Tool) -> str:
    """Return the module and the name of the tool's source, for developers."""
    source: Any = getattr(tool, "__wrapped__", type(tool))
    return f"{source.__module__}.{source.__qualname__}"


def secret_places(config: Config) -> list[Path]:
    """Return the files and folders of the user that hold secrets."""
    home = user_home(config.environment)
    return [] if home is None else [home / name for name in USER_SECRETS]


def hidden_places(config: Config) -> tuple[Path, ...]:
    """Return the paths that no tool may read: the home of Keryx, and the user's secrets."""
    return (config.home, config.settings_home, *secret_places(config))


def child_environment(config: Config, session_id: str, workspace: Path) -> dict[str, str]:
    """Return the environment of a session's child processes: allowed variables and its own ids."""
    passed = {name: config.environment[name] for name in PASSED_ON if name in config.environment}
    return {
        "PATH": DEFAULT_PATH,
        **passed,
        "KERYX_SESSION_ID": session_id,
        "KERYX_WORKSPACE": str(workspace),
    }
