"""Creates models by their names. Each name resolves to its own provider, address and key."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

from keryx.app.models.creation import ModelFactory
from keryx.app.models.listing import list_models, models_at
from keryx.app.runtime import Runtime
from keryx.app.services.attachments import Images
from keryx.config import DEFAULT, Config, Provider
from keryx.engine.log.state import Settings
from keryx.errors import ModelError
from keryx.events import Purpose
from keryx.models.embedded.model_file import pulled_models
from keryx.models.fallback import Fallback
from keryx.models.formats import adapter
from keryx.models.http import model_clients
from keryx.models.prices import Prices, Threads
from keryx.models.requirements import (
    key_missing,
    purpose_missing,
)
from keryx.models.servers.connection_test import TriedServer, try_out
from keryx.models.servers.discovery import FoundServer, find_local
from keryx.ports.model import Model
from keryx.ports.model_access import Endpoint

if TYPE_CHECKING:
    from keryx.app.local.local_models import LocalModels

LOCAL: Final = "local"
"""The provider of models that run on this machine, unless the configuration defines it."""
NOT_CHAT: Final = frozenset({"image", "speech", "transcription"})
"""The purposes whose models make or read media. They cannot be the model of a session."""


class Models:
    """Creates models by their names and caches them: a model reuses its connections."""

    def __init__(
        self,
        config: Config,
        requested: str | Model | None = None,
        *,
        others: Sequence[Model] = (),
        threads: Threads | None = None,
        runtime: Runtime | None = None,
    ) -> None:
        """`runtime` runs the models of this machine; without one they can only be checked."""
        self._config = config
        self._runtime = runtime
        self._local: LocalModels | None = None
        self.prices = Prices(threads)
        """The public prices."""
        self._requested = requested
        self._clients = model_clients()
        self.images = Images()
        """The images and documents that models may see."""
        self._factory = ModelFactory(self._clients.get, self.prices, self.images.load)
        self._of_program = {model.name: model for model in others}
        """The models that this program brings, by name."""
        if requested is not None and not isinstance(requested, str):
            self._of_program[requested.name] = requested
        self.loading: asyncio.Future[None] | None = None
        """Is done when `load` has ended; None: nothing is being loaded."""
        self._cache: dict[tuple[str, str], Model] = {}
        self._compact_at: dict[str, float] = {}

    @property
    def capabilities(self) -> tuple[str, ...]:
        """Return the models that only this program has, as `model:NAME`."""
        return tuple(f"model:{name}" for name in self._of_program)

    @property
    def is_requested(self) -> bool:
        """Whether the program or the command line names a model."""
        return self._requested is not None

    @property
    def default(self) -> str:
        """The name of the model of sessions that name none."""
        if isinstance(self._requested, str):
            return self._requested
        return self.default_of(DEFAULT) if self._requested is None else self._requested.name

    def default_of(self, profile: str, *, for_others: bool = False) -> str:
        """Return the name of the model of sessions of that profile that name none.

        Sessions of other processes get the configured model, if there is one, not the program's.
        """
        configured = self._config.profile(profile).model
        if for_others and self._of_program and configured:
            return configured
        if self._requested is not None:
            return self.default
        return configured or ""

    def names(self) -> list[str]:
        """Return the models that are named in the configuration or by the program."""
        configured = [
            name
            for profile in self._config.profiles.values()
            for name in (profile.model, *profile.fallback, *_chat_models(profile.auxiliary))
        ]
        return list(dict.fromkeys([*self._of_program, *filter(None, [self.default, *configured])]))

    def configure(self, config: Config) -> None:
        """Create models from this configuration from now on; a running turn keeps its model."""
        self._config = config
        self._cache = {}
        self._compact_at = {}

    def find(self, name: str, profile: str = DEFAULT) -> Model:
        """Return the model of that name, with the profile's key; `ModelError` says what to do."""
        if name in self._of_program:
            return self._of_program[name]
        model = self._cache.get((profile, name))
        if model is None:
            model = self._cache[profile, name] = self._with_fallbacks(name, profile)
        return model

    def check(self, name: str) -> None:
        """Raise `ModelError` if this model, or what it needs, is not there. Blocking."""
        if self._is_local(name, self._config.default.providers) and name not in self._of_program:
            importlib.import_module("keryx.app.local.local_models").check_local(name, self._config)
            return
        self.find(name)
        provider = self._config.default.providers.get(name.partition(":")[0])
        if (
            name not in self._of_program
            and provider is not None
            and provider.missing_key is not None
        ):
            raise key_missing(name, provider.missing_key)

    def _with_fallbacks(self, name: str, profile: str) -> Model:
        settings = self._config.profile(profile)
        model = self._create(name, settings.providers)
        if name.startswith("scripted:"):
            return model  # it cannot fail, and a demonstration must not cost money
        fallbacks = [
            self._create(fallback, settings.providers)
            for fallback in settings.fallback
            if fallback != name
        ]
        return Fallback([model, *fallbacks]) if fallbacks else model

    def for_titles(self, settings: Settings) -> Model | None:
        """Return the model that writes titles for such a session; None: no model can."""
        name = self._config.profile(settings.profile).auxiliary.get("titles") or settings.model
        if name.startswith(("scripted:", f"{LOCAL}:smollm2")) and name not in self._of_program:
            return None  # the text of one is always the same, and the other is too small
        return self.find(name, settings.profile)

    def for_summaries(self, settings: Settings) -> Model:
        """Return the model that summarizes such a session; `ModelError` if there is none."""
        name = self._config.profile(settings.profile).auxiliary.get("compaction") or settings.model
        if name.startswith("scripted:") and name not in self._of_program:
            raise ModelError(
                "not_configured",
                "the scripted model cannot summarize a session",
                "choose another model for this session, or configure models.auxiliary.compaction",
            )
        return self.find(name, settings.profile)

    def for_memory(self, profile: str, name: str | None = None) -> Model:
        """Return the named model, or the one that merges memories; `ModelError`: there is none."""
        auxiliary = self._config.profile(profile).auxiliary
        configured = auxiliary.get("memory") or auxiliary.get("compaction")
        return self.find(name or configured or self.default_of(profile), profile)

    def for_purpose(self, purpose: Purpose, settings: Settings, name: str | None = None) -> Model:
        """Return the named model, or the one for a purpose; `ModelError` if there is none."""
        auxiliary = self._config.profile(settings.profile).auxiliary
        return self.find(name or auxiliary.get(purpose) or settings.model, settings.profile)

    def endpoint(self, purpose: Purpose, profile: str) -> Endpoint:
        """Return the model that makes or reads media; `ModelError` if none is configured."""
        settings = self._config.profile(profile)
        name = settings.auxiliary.get(purpose)
        if not name:
            raise purpose_missing(purpose)
        return self._factory.create_endpoint(name, settings.providers)

    def has_auxiliary(self, purpose: Purpose, profile: str) -> bool:
        """Return whether a model of its own is configured for this purpose."""
        return bool(self._config.profile(profile).auxiliary.get(purpose))

    def compact_at(self, profile: str) -> float:
        """Return the share of a model's window at which a session of that profile is summarized."""
        share = self._compact_at.get(profile)
        if share is None:
            share = self._compact_at[profile] = self._config.profile(profile).compact_at
        return share

    def load(self) -> None:
        """Import what the default model needs, in a thread, while the host opens its home."""
        name = self.default.partition(":")[0]
        provider = self._config.default.providers.get(name)
        if provider is not None:
            importlib.import_module("aiohttp")
            adapter(provider.wire_format)
        elif name == LOCAL:
            importlib.import_module("aiohttp")

    async def wait_loaded(self) -> None:
        """Return when `load` has ended: an import on the loop would block it for as long."""
        if self.loading is not None:
            await asyncio.wait([self.loading])
            self.loading = None

    def prepare(self) -> None:
        """Start to load the public prices of these models, so that the first turn need not."""
        if any(provider.public_address for provider in self._config.default.providers.values()):
            self.prices.load_soon()

    async def models_at(self, provider: Provider) -> tuple[str, ...]:
        """Return the models of that server; `ModelError` says why it names none."""
        return await models_at(self._clients.get, provider)

    async def try_out(self, provider: Provider, model: str | None) -> TriedServer:
        """Return a model of that server that answers; `ModelError` says why none does."""
        return await try_out(
            self._clients.get,
            provider.base_url,
            provider.api_key,
            model,
            wire_format=provider.wire_format,
        )

    async def offered(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the chat models of all configured servers, and the errors of those that failed.

        All are asked at once. Models that were pulled come last.
        """
        models, problems = await list_models(self._clients.get, self._config.default.providers)
        if self._runtime is not None:
            to_thread = self._runtime.bridge.to_thread
            models += await to_thread(pulled_models, self._config.settings_home)
        return models, problems

    async def on_this_machine(self) -> list[FoundServer]:
        """Return the model servers that run on this machine."""
        return await find_local(self._clients.get)

    @property
    def local(self) -> LocalModels:
        """The models that run on this machine. Imported at the first use only."""
        if self._local is None:
            assert self._runtime is not None, "these models were created without a runtime"
            module = importlib.import_module("keryx.app.local.local_models")
            self._local = cast("LocalModels", module.LocalModels(self._runtime))
        return self._local

    async def close(self) -> None:
        self.prices.close()
        if self._local is not None:
            await self._local.close()
        await self._clients.close()

    def _create(self, name: str, providers: Mapping[str, Provider]) -> Model:
        if self._is_local(name, providers):
            return self.local.create(name, self._config, self._clients.get)
        return self._factory.create(name, providers)

    @staticmethod
    def _is_local(name: str, providers: Mapping[str, Provider]) -> bool:
        return name.startswith(f"{LOCAL}:") and LOCAL not in providers


def _chat_models(auxiliary: Mapping[str, str]) -> list[str]:
    return [name for purpose, name in auxiliary.items() if purpose not in NOT_CHAT]
