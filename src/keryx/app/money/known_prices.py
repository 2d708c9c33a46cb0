"""Which models have a known price, and what is said about the others under a limit for money."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from keryx.app.models import NOT_CHAT, Models
from keryx.config import Config
from keryx.engine.log.state import Settings
from keryx.engine.session_context import PromptParts
from keryx.models.servers.providers import row_at

ToThread = Callable[[Callable[[], None]], Awaitable[None]]


class KnownPrices:
    """Says which models have a price; the public prices are loaded when they are first needed."""

    def __init__(self, models: Models, config: Callable[[], Config], to_thread: ToThread) -> None:
        """`config` returns the configuration that holds now."""
        self._models = models
        self._config = config
        self._to_thread = to_thread
        self._named: set[str] = set()
        """The models that a turn of this host has named as unpriced."""

    async def load(self) -> None:
        """Load the public prices, unless they are loaded or no provider has one."""
        profiles = self._config().profiles.values()
        providers = [provider for profile in profiles for provider in profile.providers.values()]
        has_public = any(provider.public_address for provider in providers)
        if has_public and not self._models.prices.is_loaded:
            await self._to_thread(self._models.prices.load)

    async def with_warnings(self, parts: PromptParts, settings: Settings) -> PromptParts:
        """Add a warning if a limit for money cannot count a model of such a session.

        It is in the first turn of each session, and in the first turn that could use the model.
        """
        await self.load()
        unpriced = [
            name for name in self._models_of(settings) if not self._is_priced(name, settings)
        ]
        if not unpriced:
            return parts
        text = (
            f"the price of {', '.join(unpriced)} is unknown, so the limits of cost do not count "
            "it; set limits.tokens_per_day, or priced_as of its provider"
        )
        is_new = not self._named.issuperset(unpriced)
        self._named.update(unpriced)
        if is_new:
            return PromptParts(parts.parts, (*parts.warnings, text), parts.at_start, parts.recall)
        return PromptParts(parts.parts, parts.warnings, (*parts.at_start, text), parts.recall)

    def _models_of(self, settings: Settings) -> list[str]:
        profile = self._config().profile(settings.profile)
        auxiliary = (name for purpose, name in profile.auxiliary.items() if purpose not in NOT_CHAT)
        return [*dict.fromkeys((settings.model, *profile.fallback, *auxiliary))]

    def _is_priced(self, name: str, settings: Settings) -> bool:
        if f"model:{name}" in self._models.capabilities:
            # A program's own model knows whether it reports its cost.
            return bool(getattr(self._models.find(name), "is_priced", False))
        provider_name, _, model = name.partition(":")
        provider = self._config().profile(settings.profile).providers.get(provider_name)
        if provider is None:
            return True  # a script costs nothing, and any other name has no provider to ask
        row, address = row_at(provider.base_url), provider.public_address
        if row is not None and row.quirks.reports_cost:
            return True
        return address is not None and self._models.prices.of(address, model).is_known
