"""From a model's name to the model. Each resolves its own provider, address and key."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping

from keryx.app.attachments import Images
from keryx.config import DEFAULT, Config, Provider
from keryx.engine.log.state import Settings
from keryx.errors import ModelError
from keryx.models.failures import not_configured
from keryx.models.fallback import Fallback
from keryx.models.http import model_clients
from keryx.models.openai import OpenAIModel
from keryx.models.prices import Prices, Threads
from keryx.models.requirements import key_missing, not_named
from keryx.models.retry import Retrying
from keryx.models.servers.connection_test import TriedServer, try_out
from keryx.models.servers.discovery import FoundServer, find_local, models_of
from keryx.ports.model import Model

TOUR = "scripted:tour"


class Models:
    """Makes models by their names and keeps them: a model keeps its connections."""

    def __init__(
        self, config: Config, asked: str | Model | None = None, *, threads: Threads | None = None
    ) -> None:
        self._config = config
        self._prices = Prices(threads)
        self._asked = asked
        self._clients = model_clients()
        self.images = Images()
        """Those that models may be shown."""
        self._brought: dict[str, Model] = {}
        if asked is not None and not isinstance(asked, str):
            self._brought[asked.name] = asked
        self._made: dict[tuple[str, str], Model] = {}
        self._compact_at: dict[str, float] = {}

    @property
    def brought(self) -> bool:
        """Whether a program brought a model of its own along."""
        return bool(self._brought)

    @property
    def brings(self) -> tuple[str, ...]:
        """What only this program has, as sessions tell of it."""
        return tuple(f"model:{name}" for name in self._brought)

    @property
    def is_given(self) -> bool:
        """Whether who made this said which model it is."""
        return self._asked is not None

    @property
    def default(self) -> str:
        """The model of a session that names none."""
        if isinstance(self._asked, str):
            return self._asked
        return self.default_of(DEFAULT) if self._asked is None else self._asked.name

    def default_of(self, profile: str, *, for_others: bool = False) -> str:
        """The model of a session of that profile that names none.

        A model that a program brought along is for its own sessions, if there is another one.
        """
        configured = self._config.profile(profile).model
        if for_others and self._brought and configured:
            return configured
        if self._asked is not None:
            return self.default
        return configured or ""

    def known(self) -> list[str]:
        """Models that somebody named; a provider may have more."""
        profiles = self._config.profiles.values()
        named = [
            name
            for each in profiles
            for name in (each.model, *each.fallback, *each.auxiliary.values())
        ]
        return list(dict.fromkeys([*self._brought, *filter(None, [self.default, *named])]))

    def configure(self, config: Config) -> None:
        """What is asked for from now on is made anew; a running turn keeps what it has."""
        self._config = config
        self._made = {}
        self._compact_at = {}

    def find(self, name: str, profile: str = DEFAULT) -> Model:
        """The model of that name, with the profile's own key; `ModelError` says what to do."""
        if name in self._brought:
            return self._brought[name]
        found = self._made.get((profile, name))
        if found is None:
            found = self._made[profile, name] = self._with_fallbacks(name, profile)
        return found

    def check(self, name: str) -> None:
        """`ModelError` if this model, or the key that it needs, is not configured."""
        self.find(name)
        provider = self._config.default.providers.get(name.partition(":")[0])
        if name not in self._brought and provider is not None and provider.missing_key is not None:
            raise key_missing(name, provider.missing_key)

    def _with_fallbacks(self, name: str, profile: str) -> Model:
        found = self._config.profile(profile)
        made = self._make(name, found.providers)
        if name.startswith("scripted:"):
            return made  # it cannot fail, and nobody should pay for a demonstration
        others = [self._make(each, found.providers) for each in found.fallback if each != name]
        return Fallback([made, *others]) if others else made

    def for_titles(self, settings: Settings) -> Model | None:
        """The model that gives titles to such a session, if there is one that can."""
        named = self._config.profile(settings.profile).auxiliary.get("titles") or settings.model
        if named.startswith("scripted:") and named not in self._brought:
            return None  # it would say what it always says
        return self.find(named, settings.profile)

    def for_summaries(self, settings: Settings) -> Model:
        """The model that sums up such a session; `ModelError` if it cannot."""
        named = self._config.profile(settings.profile).auxiliary.get("compaction") or settings.model
        if named.startswith("scripted:") and named not in self._brought:
            raise ModelError(
                "not_configured",
                "the scripted model cannot sum up what was said",
                "choose a model for this session, or configure models.auxiliary.compaction",
            )
        return self.find(named, settings.profile)

    def compact_at(self, profile: str) -> float:
        """The part of a model's window at which a session of that profile is summed up."""
        share = self._compact_at.get(profile)
        if share is None:
            share = self._compact_at[profile] = self._config.profile(profile).compact_at
        return share

    def load(self) -> None:
        """Load what the default model needs, in a thread, while the host opens its home."""
        provider = self.default.partition(":")[0]
        if provider in self._config.default.providers:
            importlib.import_module("aiohttp")

    def prepare(self) -> None:
        """Load soon what is public of these models: for who stays, and need not wait for a turn."""
        if any(each.public_address for each in self._config.default.providers.values()):
            self._prices.want()

    async def at(self, base_url: str, api_key: str | None) -> tuple[str, ...]:
        """The models of that server; `ModelError` says why there are none to be had."""
        return await models_of(self._clients.get, base_url, api_key)

    async def try_out(self, base_url: str, api_key: str | None, model: str | None) -> TriedServer:
        """A model of that server that answers; `ModelError` says why none does."""
        return await try_out(self._clients.get, base_url, api_key, model)

    async def offered(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The models of all configured servers, and what kept others from answering."""
        models: list[str] = []
        problems: list[str] = []
        for name, provider in self._config.default.providers.items():
            if provider.missing_key is not None:
                problems.append(str(key_missing(name, provider.missing_key)))
                continue
            try:
                found = await self.at(provider.base_url, provider.api_key)
            except ModelError as error:
                problems.append(f"{name}: {error}")
            else:
                models += [f"{name}:{each}" for each in found]
        return tuple(models), tuple(problems)

    async def on_this_machine(self) -> list[FoundServer]:
        """Model servers that run here."""
        return await find_local(self._clients.get)

    async def close(self) -> None:
        self._prices.close()
        await self._clients.close()

    def _make(self, name: str, providers: Mapping[str, Provider]) -> Model:
        provider, _, model = name.partition(":")
        if provider == "scripted":
            return _scripted(name)
        if not providers:
            raise not_configured()
        if not name:
            raise not_named(providers)
        found = providers.get(provider)
        if found is None or not model:
            known = ", ".join(sorted(providers))
            raise ModelError(
                "not_configured",
                f"nobody knows the model {name!r}",
                f"write provider:name; configured providers are {known}",
            )
        address = found.public_address
        return Retrying(
            OpenAIModel(
                name=name,
                model=model,
                base_url=found.base_url,
                api_key=found.api_key,
                missing_key=found.missing_key,
                clients=self._clients.get,
                window=found.window(model),
                public=None if address is None else self._prices.of(address, model),
                sees_images=found.sees(model),
                blobs=self.images.load,
            )
        )


def _scripted(name: str) -> Model:
    """Says one thing, whatever it is asked; the tour's follows its script. Loaded when it is."""
    if name == TOUR:
        tour: Model = importlib.import_module("keryx.models.tour").tour_model()
        return tour
    scripted = importlib.import_module("keryx.models.scripted")
    text = "This is the scripted model: it says this, whatever it is asked."
    made: Model = scripted.ScriptedModel(_always(scripted.ScriptedReply(text=text)), name=name)
    return made


def _always(reply: object) -> Callable[[object], object]:
    def script(asked: object) -> object:
        del asked
        return reply

    return script
