"""Settings about usage: where it is exported to. Nothing is exported unless the user says so."""

from __future__ import annotations

import msgspec

from keryx.models.requirements import check_address


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
