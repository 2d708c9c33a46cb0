"""From a model's name to the model. Each resolves its own provider, address and key."""

from __future__ import annotations

from keryx.config import Config
from keryx.errors import ModelError
from keryx.models.failures import not_configured
from keryx.models.http import model_clients
from keryx.models.openai import OpenAIModel
from keryx.models.retry import Retrying
from keryx.models.scripted import ScriptedModel, ScriptedReply
from keryx.ports.model import Model, ModelRequest


class Models:
    """Makes models by their names and keeps them: a model keeps its connections."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._clients = model_clients()
        self._made: dict[str, Model] = {}

    def add(self, model: Model) -> None:
        """A model that a program brings along."""
        self._made[model.name] = model

    def find(self, name: str) -> Model:
        """The model of that name; `ModelError` says what to configure."""
        found = self._made.get(name)
        if found is None:
            found = self._made[name] = self._make(name)
        return found

    async def close(self) -> None:
        await self._clients.close()

    def _make(self, name: str) -> Model:
        provider, _, model = name.partition(":")
        if provider == "scripted":
            return ScriptedModel(_echo, name=name)
        if not name or not self._config.providers:
            raise not_configured()
        found = self._config.providers.get(provider)
        if found is None or not model:
            known = ", ".join(sorted(self._config.providers))
            raise ModelError(
                "not_configured",
                f"nobody knows the model {name!r}",
                f"write provider:name; configured providers are {known}",
            )
        return Retrying(
            OpenAIModel(
                name=name,
                model=model,
                base_url=found.base_url,
                api_key=found.api_key,
                clients=self._clients.get,
            )
        )


def _echo(request: ModelRequest) -> ScriptedReply:
    del request
    return ScriptedReply(text="This is the scripted model: it says this, whatever it is asked.")
