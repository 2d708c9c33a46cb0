"""A strict Bot API server on loopback, faulty on demand, for tests of the gateway.

    async with BotApi() as api:
        api.say(7, "Hello")            # an update of the person 7
        await api.wait(lambda: ...)    # until something is so

It follows the published API: offsets, 409 for a second poll, 429 with retry_after, limits of
lengths, entities, replies, topics, buttons, drafts, and errors in the API's own words.
"""

from tests.gateway.bot_api.rules import ApiError, SentMessage, ShownDraft
from tests.gateway.bot_api.server import TOKEN, BotApi, Fault

__all__ = ["TOKEN", "ApiError", "BotApi", "Fault", "SentMessage", "ShownDraft"]
