"""Which facts of a log are remembered: their rows of the outbox, committed together with them."""

from __future__ import annotations

from collections.abc import Callable

from keryx import events as ev
from keryx.engine.log.fold import Fold
from keryx.engine.log.state import Delivered, HistoryItem, Replied
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
        if isinstance(fact, ev.TurnUndone | ev.TurnRestored) and _is_inherited(fact, fold):
            return None  # the other session taught it, and there it still holds
        match fact:
            case ev.MemoryChanged():
                return self._memory.changed_row(fact)
            case ev.TurnUndone():
                return self._memory.undone_row(fact)
            case ev.TurnRestored():
                return self._memory.restored_row(fact, _turn(fact, fold, self._redactor()))
            case ev.TurnFinished():
                turn = _turn(fact, fold, self._redactor())
                return None if turn is None else self._memory.turn_row(turn)
            case _:
                return None


def _is_inherited(fact: ev.TurnUndone | ev.TurnRestored, fold: Fold) -> bool:
    """Return whether a fork has the turn from another session."""
    inherited = fold.memories.inherited
    items = _items(fact.turn_id, fold) if inherited else []
    return bool(items) and items[0].seq <= inherited


def _turn(
    fact: ev.TurnFinished | ev.TurnRestored, fold: Fold, redactor: Redactor
) -> TurnMemory | None:
    """Return what people and the model said in a turn, without tools and memories.

    Providers may be elsewhere, so they get no values of secrets.
    """
    is_over = fold.turn is None or fold.turn.turn_id != fact.turn_id
    if fold.parent is not None or is_over != isinstance(fact, ev.TurnRestored):
        return None
    items = _items(fact.turn_id, fold)
    texts: list[TurnText] = []
    for item in items:
        match item:
            case Delivered() if item.message.text:
                text = redactor.text(item.message.text)
                texts.append(TurnText(item.message.message_id, "user", text))
            case Replied() if item.reply.text and not item.reply.calls:
                text = redactor.text(item.reply.text)
                texts.append(TurnText(item.reply.step_id, "assistant", text))
            case _:
                pass
    first = next((item for item in items if isinstance(item, Delivered)), None)
    if first is None or not any(text.by == "user" for text in texts):
        return None
    last = items[-1]
    said = last.reply if isinstance(fact, ev.TurnRestored) and isinstance(last, Replied) else fact
    return TurnMemory(
        id=fact.turn_id,
        session_id=fact.session_id,
        profile=first.memory_profile,
        workspace=first.message.workspace,
        at=said.at,
        seq=said.seq,
        texts=tuple(texts),
    )


def _items(turn_id: str, fold: Fold) -> list[HistoryItem]:
    """Return the history of a turn. That of the last one stands at the end, and ends the search."""
    items: list[HistoryItem] = []
    for item in reversed(fold.history):
        if item.turn_id == turn_id:
            items.append(item)
        elif items:
            break
    return items[::-1]
