"""Creates the platforms that the configuration names."""

from __future__ import annotations

import msgspec

from keryx.aio.clock import Clock
from keryx.config.gateway import GatewayConfig, TelegramConfig, WebhookConfig
from keryx.config.schema import ConfigurationError
from keryx.gateway.listener import Listener
from keryx.gateway.people import UNLIMITED, Budget
from keryx.gateway.talk.answers import Streaming
from keryx.gateway.talk.planner import SessionsBy
from keryx.gateway.telegram.platform import Telegram, ToThread
from keryx.gateway.telegram.webhook import TelegramWebhook
from keryx.gateway.tuning import Tuning
from keryx.gateway.webhook.platform import Webhook
from keryx.ports.platform import Platform


class ConfiguredPlatform(msgspec.Struct, frozen=True, kw_only=True):
    """A platform, and what the configuration says about its use."""

    platform: Platform
    allowed: frozenset[str]
    owners: frozenset[str]
    sessions_by: SessionsBy
    streaming: Streaming = "edits"
    budget: Budget = UNLIMITED
    needs_listener: bool = False


def configured_platforms(
    config: GatewayConfig, clock: Clock, to_thread: ToThread, listener: Listener, tuning: Tuning
) -> list[ConfiguredPlatform]:
    """Return all platforms; `ConfigurationError` says which setting is missing."""
    platforms: list[ConfiguredPlatform] = []
    if config.telegram is not None:
        platforms.append(_telegram(config.telegram, clock, to_thread, listener, tuning))
    if config.webhook is not None:
        platforms.append(_webhook(config.webhook, clock, listener, tuning))
    return platforms


def _telegram(
    config: TelegramConfig, clock: Clock, to_thread: ToThread, listener: Listener, tuning: Tuning
) -> ConfiguredPlatform:
    if not config.token:
        raise ConfigurationError(
            f"[gateway.telegram] has no token; set the variable {config.token_env}, or `token`, as "
            "@BotFather shows it"
        )
    bot = Telegram(
        config.token,
        clock,
        to_thread,
        api_url=config.api_url,
        timeout=tuning.request_timeout,
        wait=tuning.poll_wait,
        pause=tuning.poll_pause,
    )
    if config.mode == "webhook":
        assert config.webhook_url is not None
        bot.receiver = TelegramWebhook(bot, listener, config.webhook_url)
    return ConfiguredPlatform(
        platform=bot,
        allowed=frozenset(map(str, (*config.allow, *config.owner))),
        owners=frozenset(map(str, config.owner)),
        sessions_by=config.sessions,
        streaming=config.streaming,
        budget=Budget(turns=config.turns_per_day, tokens=config.tokens_per_day),
        needs_listener=config.mode == "webhook",
    )


def _webhook(
    config: WebhookConfig, clock: Clock, listener: Listener, tuning: Tuning
) -> ConfiguredPlatform:
    if not config.secret:
        raise ConfigurationError(
            f"[gateway.webhook] has no secret; set the variable {config.secret_env}, or `secret`"
        )
    return ConfiguredPlatform(
        platform=Webhook(
            config.url, config.secret, clock, listener, timeout=tuning.request_timeout
        ),
        allowed=frozenset((*config.allow, *config.owner)),
        owners=frozenset(config.owner),
        sessions_by=config.sessions,
        budget=Budget(turns=config.turns_per_day, tokens=config.tokens_per_day),
        needs_listener=True,
    )
