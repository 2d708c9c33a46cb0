"""Creates models by their names. Each name resolves to its own provider, address and key."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Final

from keryx.app.services.attachments import Images
from keryx.config import DEFAULT, Config, Provider
from keryx.engine.log.state import Settings
from keryx.errors import ModelError
from keryx.events import Purpose
from keryx.models.failures import not_configured
from keryx.models.fallback import Fallback
from keryx.models.http import model_clients
from keryx.models.openai import OpenAIEndpoint, OpenAIModel
from keryx.models.prices import Prices, Threads
from keryx.models.requirements import key_missing, not_named, purpose_missing
from keryx.models.retry import Retrying
from keryx.models.servers.connection_test import TriedServer, try_out
from keryx.models.servers.discovery import FoundServer, find_local, models_of
from keryx.ports.model import Model

TOUR = "scripted:tour"
NOT_CHAT: Final = frozenset({"image", "speech", "transcription"})
"""The purposes whose models make or read media. They cannot be the model of a session."""


class Models:
    """Creates models by their names and caches them: a model reuses its connections."""

    def __init__(
        self,
        config: Config,
        requested: str | Model | None = None,
        *,
        threads: Threads | None = None,
    ) -> None:
        self._config = config
        self.prices = Prices(threads)
        """The public prices."""
        self._requested = requested
        self._clients = model_clients()
        self.images = Images()
        """The images that models may see."""
        self._of_program: dict[str, Model] = {}
        if requested is not None and not isinstance(requested, str):
            self._of_program[requested.name] = requested
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
        """Raise `ModelError` if this model, or the key that it needs, is not configured."""
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
        if name.startswith("scripted:") and name not in self._of_program:
            return None  # its text is always the same
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

    def endpoint(self, purpose: Purpose, profile: str) -> OpenAIEndpoint:
        """Return the model that makes or reads media; `ModelError` if none is configured."""
        settings = self._config.profile(profile)
        name = settings.auxiliary.get(purpose)
        if not name:
            raise purpose_missing(purpose)
        provider, model = _provider_of(name, settings.providers)
        return OpenAIEndpoint(
            name=name,
            model=model,
            base_url=provider.base_url,
            api_key=provider.api_key,
            missing_key=provider.missing_key,
            clients=self._clients.get,
        )

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
        provider = self.default.partition(":")[0]
        if provider in self._config.default.providers:
            importlib.import_module("aiohttp")

    def prepare(self) -> None:
        """Start to load the public prices of these models, so that the first turn need not."""
        if any(provider.public_address for provider in self._config.default.providers.values()):
            self.prices.load_soon()

    async def models_at(self, base_url: str, api_key: str | None) -> tuple[str, ...]:
        """Return the models of that server; `ModelError` says why it names none."""
        return await models_of(self._clients.get, base_url, api_key)

    async def try_out(self, base_url: str, api_key: str | None, model: str | None) -> TriedServer:
        """Return a model of that server that answers; `ModelError` says why none does."""
        return await try_out(self._clients.get, base_url, api_key, model)

    async def offered(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the models of all configured servers, and the errors of servers that failed."""
        models: list[str] = []
        problems: list[str] = []
        for name, provider in self._config.default.providers.items():
            if provider.missing_key is not None:
                problems.append(str(key_missing(name, provider.missing_key)))
                continue
            try:
                names = await self.models_at(provider.base_url, provider.api_key)
            except ModelError as error:
                problems.append(f"{name}: {error}")
            else:
                models += [f"{name}:{model}" for model in names]
        return tuple(models), tuple(problems)

    async def on_this_machine(self) -> list[FoundServer]:
        """Return the model servers that run on this machine."""
        return await find_local(self._clients.get)

    async def close(self) -> None:
        self.prices.close()
        await self._clients.close()

    def _create(self, name: str, providers: Mapping[str, Provider]) -> Model:
        provider = name.partition(":")[0]
        if provider == "scripted":
            return _scripted(name)
        settings, model = _provider_of(name, providers)
        address = settings.public_address
        return Retrying(
            OpenAIModel(
                name=name,
                model=model,
                base_url=settings.base_url,
                api_key=settings.api_key,
                missing_key=settings.missing_key,
                clients=self._clients.get,
                window=settings.window(model),
                public=None if address is None else self.prices.of(address, model),
                sees_images=settings.sees(model),
                blobs=self.images.load,
            )
        )


def _provider_of(name: str, providers: Mapping[str, Provider]) -> tuple[Provider, str]:
    """Return the provider and its own name of a model; `ModelError` says what to configure."""
    if not providers:
        raise not_configured()
    if not name:
        raise not_named(providers)
    provider, _, model = name.partition(":")
    settings = providers.get(provider)
    if settings is None or not model:
        configured = ", ".join(sorted(providers))
        raise ModelError(
            "not_configured",
            f"the model {name!r} is not configured",
            f"write provider:name; configured providers are {configured}",
        )
    return settings, model


def _chat_models(auxiliary: Mapping[str, str]) -> list[str]:
    return [name for purpose, name in auxiliary.items() if purpose not in NOT_CHAT]


def _scripted(name: str) -> Model:
    """Return a scripted model: the tour's, or one that always says the same. Imported here only."""
    if name == TOUR:
        tour: Model = importlib.import_module("keryx.models.tour").tour_model()
        return tour
    scripted = importlib.import_module("keryx.models.scripted")
    text = "This is the scripted model: it says this, whatever it is asked."
    model: Model = scripted.ScriptedModel(_always(scripted.ScriptedReply(text=text)), name=name)
    return model


def _always(reply: object) -> Callable[[object], object]:
    def script(request: object) -> object:
        del request
        return reply

    return script
