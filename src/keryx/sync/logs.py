"""The logs of all sessions, for reading, blocking. Only the owner of a session writes."""

from __future__ import annotations

from keryx.events import LoggedEvent
from keryx.ports.search import Covered, Found
from keryx.ports.store import SessionRow, Store, TranscriptRow
from keryx.ports.tags import TagCount
from keryx.ports.usage import UsageRow
from keryx.sync.caller import Caller


class Logs:
    """Reads what the store of a home keeps."""

    def __init__(self, call: Caller, store: Store) -> None:
        self._call = call
        self._store = store

    def events(
        self, session_id: str, *, after: int = 0, limit: int | None = None, size: int | None = None
    ) -> list[LoggedEvent]:
        """Return the log in order; with `size` about so many bytes, at least one event."""
        return self._call(self._store.events, session_id, after=after, limit=limit, size=size)

    def sessions(
        self,
        *,
        limit: int = 50,
        before: int | None = None,
        after: int | None = None,
        archived: bool | None = False,
        parent: str | None = "",
        tag: str | None = None,
        person: str | None = None,
    ) -> list[SessionRow]:
        """Return sessions, last changed first: those that are archived, or not, or both (None).

        They were changed before the position `before`, and after the position `after`. `parent` is
        a session whose child agents' sessions are listed; empty: only sessions of no agent; None:
        all sessions. With `tag`, only those that have it, in any case. `person` is the one for whom
        they are; empty: only sessions of the owner of the home; None: of everybody.
        """
        return self._call(
            self._store.sessions,
            limit=limit,
            before=before,
            after=after,
            archived=archived,
            parent=parent,
            tag=tag,
            person=person,
        )

    def tags(self) -> list[TagCount]:
        """Return the tags that sessions have, in the order of the alphabet."""
        return self._call(self._store.tags)

    def session(self, session_id: str) -> SessionRow | None:
        """The session as the list shows it."""
        return self._call(self._store.session, session_id)

    def transcript(
        self,
        session_id: str,
        *,
        before: int | None = None,
        after: int | None = None,
        limit: int = 50,
    ) -> list[TranscriptRow]:
        """What a person reads, paged from the end, oldest first within the page.
        It ends before the seq `before`; with `after` it begins behind that one instead."""
        return self._call(
            self._store.transcript, session_id, before=before, after=after, limit=limit
        )

    def usage(self, session_id: str | None = None, *, since: float | None = None) -> list[UsageRow]:
        """Return the usage, of all time or `since` then, in whole quarters of an hour.

        The usage of one session includes that of its child agents, in rows of their own.
        """
        return self._call(self._store.usage, session_id, since=since)

    def account(self, session_id: str) -> tuple[SessionRow, list[UsageRow]] | None:
        """A session in the list, and all that was spent in it up to the row's `last_seq`."""
        return self._call(self._store.account, session_id)

    def search(self, words: str, *, limit: int = 20, person: str | None = None) -> list[Found]:
        """Where all these words stand, in what was said, answered and done with tools.

        With a `person`, only the sessions that are for them are searched; None: all.

        Case, accents and signs do not matter. The last word may be the beginning of one, unless
        something follows it. Best first: where the words stand as they were typed; then the order
        of the list of sessions, last facts first. What was undone or deleted is not found. What was
        committed is found at once, as long as little is still to be indexed (see `covered`).
        """
        return self._call(self._store.search, words, limit=limit, person=person)

    def covered(self) -> Covered:
        """Return up to which commit a search finds everything."""
        return self._call(self._store.covered)

    def blob(self, hash_: str) -> bytes | None:
        """A large value, by the hash of its content."""
        return self._call(self._store.blob, hash_)
