"""The index of words, in a file of its own beside the store.

The index proposes, the log decides: what it names is looked up in the log before it is shown. So
it may lag, and hold what was undone or deleted meanwhile; and it can be made anew at any time.
"""

from keryx.store.sqlite.index.indexer import Indexer
from keryx.store.sqlite.index.search import IndexSearch, IndexUnreadableError

__all__ = ["IndexSearch", "IndexUnreadableError", "Indexer"]
