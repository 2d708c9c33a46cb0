"""What the slash commands about approvals and questions do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from keryx import events as ev
from keryx.cli.chatting.commands.slash_commands import number_in
from keryx.cli.chatting.conversation import Conversation
from keryx.cli.chatting.requests import Choice, Request, choices_of
from keryx.errors import UserMustActError
from keryx.messages import Decision

LASTING: Final[dict[str, Decision]] = {"session": "session", "always": "always"}
NOTHING_WAITS: Final = "Nothing is waiting for you."
APPROVAL_FIRST: Final = "An approval comes first; /allow or /deny answers it."
QUESTION_FIRST: Final = "A question comes first; /answer TEXT answers it."


class RequestActions:
    """Answers the request that a person has seen: the first one, and never another."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._by_name: dict[str, Callable[[Request | None, str], Awaitable[None]]] = {
            "allow": self._allow,
            "deny": self._deny,
            "answer": self._answer,
        }

    def takes(self, name: str) -> bool:
        """Return whether this is one of these commands, or the number of an answer."""
        return name in self._by_name or number_in(name) is not None

    async def run(self, request: Request | None, name: str, value: str) -> None:
        """Run a command on the request that the person saw when it was submitted."""
        if name in self._by_name:
            await self._by_name[name](request, value)
        else:
            await self._pick(request, name)

    async def _pick(self, request: Request | None, word: str) -> None:
        number = number_in(word) or 0
        if request is None:
            raise UserMustActError(NOTHING_WAITS)
        choices = choices_of(request)
        if not 1 <= number <= len(choices):
            raise UserMustActError(f"there is no answer {number}; pick 1 to {len(choices)}")
        await self._conversation.answer(request, choices[number - 1])

    async def _allow(self, shown: Request | None, value: str) -> None:
        request = _approval(shown)
        lasting, _, number = value.partition(" ")
        if lasting and lasting not in LASTING:
            raise UserMustActError("/allow takes: session, always, or nothing")
        reach = None
        if number:
            place = number_in(number) or 0
            if not 1 <= place <= len(request.offers):
                raise UserMustActError(f"there is no offer {number!r}")
            reach = request.offers[place - 1].reach
        decision = LASTING.get(lasting, "once")
        await self._conversation.answer(request, Choice("", "", decision, reach=reach))

    async def _deny(self, shown: Request | None, _value: str) -> None:
        await self._conversation.answer(_approval(shown), Choice("", "", "deny"))

    async def _answer(self, shown: Request | None, text: str) -> None:
        if not text:
            raise UserMustActError("/answer needs a value: /answer TEXT")
        if not isinstance(shown, ev.QuestionAsked):
            self._conversation.view.put_back(text)
            raise UserMustActError(NOTHING_WAITS if shown is None else APPROVAL_FIRST)
        await self._conversation.answer(shown, Choice("", "", answer=text))


def _approval(shown: Request | None) -> ev.ApprovalAsked:
    if not isinstance(shown, ev.ApprovalAsked):
        raise UserMustActError(NOTHING_WAITS if shown is None else QUESTION_FIRST)
    return shown
