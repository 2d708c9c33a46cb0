"""Which facts of a log are remembered: their rows of the outbox, committed together with them."""

from __future__ import annotations

from collections.abc import Callable

from keryx import events as ev
from keryx.engine.log.fold import Fold
from keryx.engine.log.state import Delivered, Replied
from keryx.engine.redaction import Redactor
from keryx.ports.memory import TurnMemory, TurnText
from keryx.ports.memory_access import HostMemory
from keryx.ports.store import OutboxRow


class OutboxRows:
    """Returns the rows of one session. A defect of the memory never keeps a fact from the log."""

    def __init__(
        self,
        memory: HostMemory,
        redactor: Callable[[], Redactor],
        report: Callable[[str, BaseException], None],
    ) -> None:
        self._memory = memory
        self._redactor = redactor
        self._report = report

    def row_of(self, fact: ev.LoggedEvent, fold: Fold) -> OutboxRow | None:
        """Return the row of a fact that is about to be applied; None: nothing is remembered."""
        try:
            return self._row_of(fact, fold)
        except Exception as error:  # noqa: BLE001 (whatever it is, the session goes on)
            self._report("remembering", error)
            return None

    def wake(self) -> None:
        """Tell the memory that rows are durable; if that fails, the next row does."""
        try:
            self._memory.wake()
        except Exception as error:  # noqa: BLE001 (whatever it is, the session goes on)
            self._report("remembering", error)

    def _row_of(self, fact: ev.LoggedEvent, fold: Fold) -> OutboxRow | None:
        match fact:
            case ev.MemoryChanged():
                return self._memory.changed_row(fact)
            case ev.TurnUndone():
                return self._memory.undone_row(fact.session_id, fact.turn_id, fact.at)
            case ev.TurnFinished():
                turn = _turn(fact, fold, self._redactor())
                return None if turn is None else self._memory.turn_row(turn)
            case _:
                return None


def _turn(fact: ev.TurnFinished, fold: Fold, redactor: Redactor) -> TurnMemory | None:
    """Return what people and the model said in the turn that ends, without tools and memories.

    Providers may be elsewhere, so they get no values of secrets.
    """
    turn = fold.turn
    if turn is None or turn.turn_id != fact.turn_id or fold.parent is not None:
        return None
    texts: list[TurnText] = []
    for item in reversed(fold.history):
        if item.turn_id != fact.turn_id:
            break
        match item:
            case Delivered() if item.message.text:
                text = redactor.text(item.message.text)
                texts.append(TurnText(item.message.message_id, "user", text))
            case Replied() if item.reply.text and not item.reply.calls:
                text = redactor.text(item.reply.text)
                texts.append(TurnText(item.reply.step_id, "assistant", text))
            case _:
                pass
    if not any(text.by == "user" for text in texts):
        return None
    return TurnMemory(
        id=fact.turn_id,
        session_id=fact.session_id,
        profile=turn.settings.profile,
        workspace=turn.workspace,
        at=fact.at,
        seq=fact.seq,
        texts=tuple(reversed(texts)),
    )
