"""The index of words, in a file of its own beside the store.

The index proposes, the log decides: every hit is checked in the log before it is shown. So the
index may lag or still have entries that were undone or deleted, and it can be rebuilt at any time.
"""

from keryx.store.sqlite.index.indexer import Indexer
from keryx.store.sqlite.index.search import IndexSearch, IndexUnreadableError

__all__ = ["IndexSearch", "IndexUnreadableError", "Indexer"]
