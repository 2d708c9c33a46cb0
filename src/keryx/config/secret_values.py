"""Which values of the configuration are secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from keryx.config import gateway
from keryx.config.schema import Config

SECRET_NAME: Final = re.compile(
    r"(KEY|TOKEN|SECRET|PASSW(OR)?D|PASSPHRASE|CREDENTIALS?)$|^(KEY|TOKEN|SECRET|PASSWORD)_",
    re.IGNORECASE,
)
SECRET_HEADERS: Final = ("authorization", "proxy-authorization", "cookie")


def secrets_of(config: Config) -> dict[str, str]:
    """Return the secret values by name: keys of providers, and variables named like secrets."""
    secrets = {
        name: value for name, value in config.environment.items() if SECRET_NAME.search(name)
    }
    values = set(secrets.values())
    for profile_name, profile in config.profiles.items():
        for name, provider in profile.providers.items():
            if provider.api_key and provider.api_key not in values:
                values.add(provider.api_key)
                label = provider.api_key_env or f"the key of {name}"
                if label in secrets:
                    label = f"{label} ({profile_name})"
                secrets[label] = provider.api_key
    secrets.update(_secrets_of_servers(config))
    web = config.tools.web
    for label, key in (
        (web.brave_api_key_env, web.brave_api_key),
        (web.tavily_api_key_env, web.tavily_api_key),
        (config.memory.honcho.api_key_env, config.memory.honcho.api_key),
        *gateway.secrets_in(config.gateway),
    ):
        if key and key not in values:
            secrets[label if label not in secrets else f"{label} (config.toml)"] = key
    return {label: value for label, value in secrets.items() if value}


def _secrets_of_servers(config: Config) -> Iterator[tuple[str, str]]:
    for name, server in config.mcp.servers.items():
        if server.oauth is not None and server.oauth.client_secret:
            yield f"client_secret of {name}", server.oauth.client_secret
        for variable, value in {**server.env, **server.headers}.items():
            if SECRET_NAME.search(variable.replace("-", "_")) or variable.lower() in SECRET_HEADERS:
                # Of "Bearer abc" the second word is the secret.
                yield f"{variable} of {name}", value.rpartition(" ")[2]
