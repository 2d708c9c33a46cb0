"""What can be configured, as plain data. It refuses to know where that is written."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

import msgspec

from keryx.errors import UserMustActError
from keryx.messages import ApprovalMode
from keryx.models.requirements import check_address

DEFAULT: Final = "default"
"""The profile of sessions that name none."""

IN_MEMORY: Final = ":memory:"
"""A home that is nowhere: all of it is in the process that asks for it, and ends with it."""

COMPACT_AT: Final = 0.8
"""What is left of the window is for the reply, and for what was guessed too low."""


class ConfigurationError(UserMustActError):
    """The configuration cannot be used; the text says where and why."""


class Provider(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a provider's models are reached, and with what key."""

    base_url: str
    api_key: str | None = None
    api_key_env: str | None = None
    """The name of the variable that holds the key, for those who keep it out of files."""
    images: tuple[str, ...] = ("gpt-4o*", "gpt-4.1*", "gpt-5*", "o3*", "o4*", "*-vl*", "*vision*")
    """Which of its models are shown images, with * and ?."""
    windows: dict[str, int] = {}
    """How many tokens fit into its models, with * and ?; for those that are not public."""
    priced_as: str | None = None
    """The address of the provider whose prices count, for a server that only passes on."""

    def __post_init__(self) -> None:
        """`ValueError` says what is wrong with an address, and what one looks like."""
        check_address(self.base_url)
        if self.priced_as is not None:
            check_address(self.priced_as)

    @property
    def missing_key(self) -> str | None:
        """The variable that should hold the key, if it is not set."""
        return self.api_key_env if not self.api_key else None

    def window(self, model: str) -> int | None:
        """How many tokens fit into that model, if somebody said so."""
        fits = (size for name, size in self.windows.items() if fnmatch.fnmatchcase(model, name))
        return next(fits, None)

    @property
    def public_address(self) -> str | None:
        """Where its models are known by their names; None for a server of one's own."""
        if self.priced_as is not None:
            return self.priced_as
        host = urlsplit(self.base_url).hostname or ""
        return None if host == "localhost" or host.startswith("127.") else self.base_url

    def sees(self, model: str) -> bool:
        """Whether that model is shown images, not only told of them."""
        return any(fnmatch.fnmatchcase(model, pattern) for pattern in self.images)


class LimitsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What ends a turn that would not end by itself."""

    steps: int | None = 200
    tokens: int | None = None
    seconds: float | None = None


Confined = Literal["on", "required", "off"]
Durability = Literal["normal", "full"]


class ApprovalsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which calls ask a person. Rules are written `tool` or `tool:pattern`, with * and ?."""

    mode: ApprovalMode = "auto"
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    expires: float | None = None
    """Seconds after which nobody may answer any more."""


class ServerConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How `keryx serve` is reached, if something stands before it. Read when it starts."""

    url: str | None = None
    """The address that people use."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks whose headers about their clients are believed."""


class Personality(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How an agent speaks."""

    system_prompt: str = ""
    prompt: str = ""
    tone: str = ""
    style: str = ""

    @property
    def text(self) -> str:
        """As the model is told."""
        said = [self.system_prompt or self.prompt]
        said += [f"Tone: {self.tone}"] if self.tone else []
        said += [f"Style: {self.style}"] if self.style else []
        return "\n".join(line for line in said if line)


class ModelsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Models besides the one that a session works with."""

    auxiliary: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """For work beside the turns, by what they do: titles, compaction."""
    fallback: tuple[str, ...] = ()
    """Asked in this order when the session's own cannot answer."""
    compact_at: Annotated[float, msgspec.Meta(ge=0.1, le=1.0)] | None = None
    """The part of a model's window at which what was said is summed up by itself."""


class ProfileConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is otherwise for sessions of one profile; what it leaves out is as for all."""

    model: str | None = None
    models: ModelsConfig = msgspec.field(default_factory=ModelsConfig)
    providers: dict[str, Provider] = msgspec.field(default_factory=dict[str, Provider])
    personalities: dict[str, str | Personality] = msgspec.field(
        default_factory=dict[str, str | Personality]
    )
    toolsets: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict[str, tuple[str, ...]])


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """What sessions of one profile work with."""

    model: str | None
    auxiliary: Mapping[str, str]
    """Models for work beside the turns; what is not named here is done by the session's own."""
    fallback: tuple[str, ...]
    compact_at: float
    providers: Mapping[str, Provider]
    personalities: Mapping[str, Personality]
    toolsets: Mapping[str, tuple[str, ...]]
    """The tools and toolsets that a front end (`cli`, `web`, `gateway`) gives its new sessions."""


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was configured, from all sources."""

    home: Path
    in_memory: bool = False
    """Whether nothing is kept: the home is a temporary folder, and the store is in this process."""
    durability: Durability
    limits: LimitsConfig
    approvals: ApprovalsConfig
    server: ServerConfig
    confinement: Confined
    profiles: Mapping[str, Profile]
    """By name; `default` is always there."""
    is_model_written: bool
    """Whether a variable or `config.toml` names the model: then no choice elsewhere counts."""
    written: tuple[tuple[int, int] | None, ...]
    """When the files were written and how long they were, to notice a change."""
    environment: Mapping[str, str]
    """The variables that were read, for reading the file again."""

    @property
    def default(self) -> Profile:
        """What sessions of no other profile work with."""
        return self.profiles[DEFAULT]

    def profile(self, name: str) -> Profile:
        """That profile, or the default one if there is none of that name."""
        return self.profiles.get(name, self.default)
