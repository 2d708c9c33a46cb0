"""The settings of the gateway: which chat platforms it serves, and who may talk to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

import msgspec

from keryx.models.requirements import check_address

TelegramId = Annotated[int, msgspec.Meta(ge=1)]
"""Of a person; groups have negative numbers."""
WebhookId = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Limit = Annotated[int, msgspec.Meta(ge=1)]


class TelegramConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A bot of Telegram."""

    token: str | None = None
    token_env: str = "TELEGRAM_BOT_TOKEN"  # noqa: S105 (the name of a variable)
    """The environment variable that holds the token, to keep the token out of files."""
    allow: tuple[int, ...] = ()
    """The numbers of the people who may talk to the bot. Others get nothing."""
    owner: tuple[TelegramId, ...] = ()
    """The numbers under which the owner of the home writes. Their private chats share memories and
    sessions with the page and the terminal; everybody else has memories of their own."""
    sessions: Literal["chat", "topic", "person"] = "topic"
    """Whether a chat, each topic of it, or each person in it has a session of its own."""
    streaming: Literal["edits", "drafts", "off"] = "edits"
    """How an answer is shown while it is written. Drafts are for private chats only."""
    turns_per_day: Limit | None = None
    """The messages that each person may send in a day (UTC)."""
    tokens_per_day: Limit | None = None
    """The tokens after which a person gets no more turns on that day (UTC)."""
    mode: Literal["polling", "webhook"] = "polling"
    webhook_url: str | None = None
    """For `webhook`: the public address that leads to the gateway's port."""
    api_url: str = "https://api.telegram.org"
    """A Bot API server of one's own, if there is one."""

    def __post_init__(self) -> None:
        """Raise `ValueError`, with an example, if an address is wrong."""
        check_address(self.api_url)
        if self.webhook_url is not None:
            check_address(self.webhook_url)
        elif self.mode == "webhook":
            raise ValueError("webhook_url is missing; write one such as https://example.com/bot")


class WebhookConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Signed JSON over HTTP, for programs and other platforms."""

    url: str
    """Where answers are sent."""
    secret: str | None = None
    secret_env: str = "KERYX_WEBHOOK_SECRET"  # noqa: S105 (the name of a variable)
    allow: tuple[str, ...] = ()
    """The ids of the people who may talk. Others get nothing."""
    owner: tuple[WebhookId, ...] = ()
    """The ids under which the owner of the home writes, as above."""
    sessions: Literal["chat", "topic", "person"] = "topic"
    turns_per_day: Limit | None = None
    tokens_per_day: Limit | None = None

    def __post_init__(self) -> None:
        """Raise `ValueError`, with an example, if the address is wrong."""
        check_address(self.url)


class GatewayConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The chat platforms. Read when the gateway starts."""

    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 8378
    """Where the gateway listens for webhooks, if a platform needs that."""
    telegram: TelegramConfig | None = None
    webhook: WebhookConfig | None = None

    @property
    def is_configured(self) -> bool:
        return self.telegram is not None or self.webhook is not None


def with_secrets(config: GatewayConfig, env: Mapping[str, str]) -> GatewayConfig:
    """Return the settings with the secrets that the environment holds."""
    telegram, webhook = config.telegram, config.webhook
    if telegram is not None and telegram.token is None:
        telegram = msgspec.structs.replace(telegram, token=env.get(telegram.token_env))
    if webhook is not None and webhook.secret is None:
        webhook = msgspec.structs.replace(webhook, secret=env.get(webhook.secret_env))
    return msgspec.structs.replace(config, telegram=telegram, webhook=webhook)


def secrets_in(config: GatewayConfig) -> Iterator[tuple[str, str | None]]:
    """Yield the name and the value of each secret."""
    if config.telegram is not None:
        yield config.telegram.token_env, config.telegram.token
    if config.webhook is not None:
        yield config.webhook.secret_env, config.webhook.secret
