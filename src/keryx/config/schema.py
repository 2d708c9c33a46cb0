"""The settings, as plain data. This module does not know where they are stored."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

import msgspec

from keryx.config.gateway import GatewayConfig
from keryx.config.providers import Provider
from keryx.errors import UserMustActError
from keryx.messages import ApprovalMode
from keryx.models.requirements import check_address
from keryx.tools.hooks.settings import HookSettings
from keryx.tools.mcp.settings import ServerList

DEFAULT: Final = "default"
"""The profile of sessions that name no profile."""

IN_MEMORY: Final = ":memory:"
"""A home without a folder: its state is in the memory of one process and ends with that process."""

FrontEnd = Literal["cli", "web", "gateway", "program", "api"]
"""What opens a session: a command, the page and the API, a chat, or a program with the library."""
FRONT_ENDS: Final[tuple[FrontEnd, ...]] = get_args(FrontEnd)

COMPACT_AT: Final = 0.8
"""The rest of the context window is for the reply, and for tokens that were estimated too low."""


class ConfigurationError(UserMustActError):
    """The configuration cannot be used; the text says where and why."""


Cost = Annotated[float, msgspec.Meta(ge=0, le=1_000_000_000)]
"""US dollars."""
Count = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]


class LimitsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The limits that end a turn. Costs are in US dollars; None: no limit."""

    steps: Count | None = 200
    tokens: Count | None = None
    """Per turn, as are `steps` and `seconds`."""
    seconds: Seconds | None = None
    cost_per_turn: Cost | None = None
    cost_per_session: Cost | None = None
    cost_per_day: Cost | None = None
    """From midnight to midnight, in the time zone of the host."""
    tokens_per_session: Annotated[int, msgspec.Meta(ge=0)] | None = None
    tokens_per_day: Annotated[int, msgspec.Meta(ge=0)] | None = None


Confined = Literal["on", "required", "off"]
Durability = Literal["normal", "full"]


class ApprovalsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which calls need approval. Rules are written `tool` or `tool:pattern`, with * and ?."""

    mode: ApprovalMode = "auto"
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    expires: Seconds | None = None
    """Seconds after which an approval expires."""


class ServerConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How people reach `keryx serve` behind a proxy. Read when the server starts."""

    url: str | None = None
    """The address that people use."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks of proxies whose X-Forwarded-* headers are trusted."""


class WebConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The tools `web_search` and `web_extract`. Read when a host starts."""

    backend: Literal["searxng", "brave", "tavily", "ddgs"] | None = None
    """The search engine; None: the first one that is configured."""
    searxng_url: str | None = None
    brave_api_key: str | None = None
    brave_api_key_env: str = "BRAVE_API_KEY"
    tavily_api_key: str | None = None
    tavily_api_key_env: str = "TAVILY_API_KEY"
    allow_private: tuple[str, ...] = ()
    """Hosts (`host` or `host:port`) that may be read although their addresses are private."""

    def __post_init__(self) -> None:
        """Raise `ValueError`, with an example, if an address or a host is wrong."""
        if self.searxng_url is not None:
            check_address(self.searxng_url)
        if self.allow_private:
            from keryx.tools.web.addresses import check_exception  # noqa: PLC0415 (rarely needed)

            for entry in self.allow_private:
                check_exception(entry)


class SpeechConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The tool `text_to_speech` without a model. Read when a host starts."""

    piper_voice: str | None = None
    """The voice file (.onnx) of the program piper, as an absolute path."""

    def __post_init__(self) -> None:
        """Raise `ValueError`, with an example, if the voice is not an absolute path."""
        if self.piper_voice is not None and not self.piper_voice.startswith("/"):
            raise ValueError(
                f"{self.piper_voice!r} is not an absolute path; write one such as "
                "/usr/share/piper-voices/en_US-amy-medium.onnx"
            )


class ToolsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of single tools."""

    web: WebConfig = msgspec.field(default_factory=WebConfig)
    speech: SpeechConfig = msgspec.field(default_factory=SpeechConfig)


class McpConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """MCP servers by name. Each entry is checked by itself: a wrong one stops no other."""

    servers: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict[str, dict[str, Any]])


class HonchoConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the memory provider `honcho` is reached."""

    url: str = "https://api.honcho.dev"
    api_key: str | None = None
    api_key_env: str = "HONCHO_API_KEY"
    workspace: str = "keryx"
    """The workspace at Honcho; each profile has one of its own below this name."""

    def __post_init__(self) -> None:
        """Raise `ValueError`, with an example, if the address is wrong."""
        check_address(self.url)


class MemoryConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is remembered beyond sessions. Read when a host starts; no provider: nothing is."""

    providers: tuple[str, ...] = ()
    """`notes`, `vector`, `honcho`, or a provider of an installed package."""
    wait: Annotated[float, msgspec.Meta(gt=0, le=60)] = 0.5
    """Seconds that a turn or a call waits for a provider."""
    honcho: HonchoConfig = msgspec.field(default_factory=HonchoConfig)
    settings: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict[str, dict[str, Any]])
    """The settings of providers of installed packages, by their names."""


class UsageExportConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where finished turns are posted to, as JSON."""

    url: str | None = None

    def __post_init__(self) -> None:
        """Raise `ValueError`, with an example, if the address is wrong."""
        if self.url is not None:
            check_address(self.url)


class UsageConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What happens with the counts of tokens and money."""

    export: UsageExportConfig = msgspec.field(default_factory=UsageExportConfig)


class Personality(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How an agent speaks."""

    system_prompt: str = ""
    prompt: str = ""
    tone: str = ""
    style: str = ""

    @property
    def text(self) -> str:
        """Return the text that goes into the prompt."""
        lines = [self.system_prompt or self.prompt]
        lines += [f"Tone: {self.tone}"] if self.tone else []
        lines += [f"Style: {self.style}"] if self.style else []
        return "\n".join(line for line in lines if line)


class ModelsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Models besides the session's own."""

    auxiliary: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """Models for work outside turns, by purpose: titles, compaction, vision, image, speech, ..."""
    fallback: tuple[str, ...] = ()
    """Models to try, in this order, when the session's own model cannot answer."""
    compact_at: Annotated[float, msgspec.Meta(ge=0.1, le=1.0)] | None = None
    """The share of a model's context window at which a session is compacted automatically."""


class ProfileConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings for the sessions of one profile; they override the general ones."""

    model: str | None = None
    models: ModelsConfig = msgspec.field(default_factory=ModelsConfig)
    providers: dict[str, Provider] = msgspec.field(default_factory=dict[str, Provider])
    personalities: dict[str, str | Personality] = msgspec.field(
        default_factory=dict[str, str | Personality]
    )
    toolsets: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict[str, tuple[str, ...]])


FileStamp = tuple[int, int] | None
"""The modification time and size of a file; None: there is no such file."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one profile, merged with the general ones."""

    model: str | None
    auxiliary: Mapping[str, str]
    """Models for work outside turns, by purpose; the default is the session's own model."""
    fallback: tuple[str, ...]
    compact_at: float
    providers: Mapping[str, Provider]
    personalities: Mapping[str, Personality]
    toolsets: Mapping[str, tuple[str, ...]]
    """The tools and toolsets of new sessions, by front end; no entry: all tools."""


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration, merged from all sources."""

    home: Path
    settings_home: Path
    """Where the settings, tools, skills and models are: `home`, except for named users."""
    fence: str | None = None
    """The folder that no approval leads out of; None: there is no such bound."""
    in_memory: bool = False
    """Whether nothing is kept: the home is a temporary folder, and the store is in memory."""
    durability: Durability
    limits: LimitsConfig
    approvals: ApprovalsConfig
    server: ServerConfig
    confinement: Confined
    tools: ToolsConfig = msgspec.field(default_factory=ToolsConfig)
    memory: MemoryConfig = msgspec.field(default_factory=MemoryConfig)
    gateway: GatewayConfig = msgspec.field(default_factory=GatewayConfig)
    usage: UsageConfig = msgspec.field(default_factory=UsageConfig)
    hooks: tuple[HookSettings, ...] = ()
    """The hooks, in the order in which they run."""
    toolsets: Mapping[str, tuple[str, ...]] = msgspec.field(
        default_factory=dict[str, tuple[str, ...]]
    )
    """Sets of tools and toolsets that the user named. None contains itself."""
    profiles: Mapping[str, Profile]
    """By name; there is always one named `default`."""
    mcp: ServerList = msgspec.field(default_factory=ServerList)
    """The MCP servers, from `config.toml` and `mcp.json`, and what is wrong with others."""
    is_model_written: bool
    """Whether KERYX_MODEL or `config.toml` names the model: then no choice on the page counts."""
    stamps: Mapping[str, FileStamp]
    """The stamp of each file that was read, by its path, to notice a change."""
    environment: Mapping[str, str]
    """The environment variables that were read, for reading the files again."""

    @property
    def default(self) -> Profile:
        """Return the default profile."""
        return self.profiles[DEFAULT]

    def profile(self, name: str) -> Profile:
        """Return the profile of that name, or the default one if there is none."""
        return self.profiles.get(name, self.default)
