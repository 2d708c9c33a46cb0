"""What a model costs and how much fits into it, as far as that is public.

The list is a large library that takes a fifth of a second to load. Nobody waits for it: it is
loaded in a thread, once a model takes its time to answer. What is not known, or not yet, is None.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable
from typing import Any, Final

from keryx.events import Usage

# A server on this machine has answered by then, and has no public price; all others have not.
UNHURRIED: Final = 0.1

Threads = Callable[[Callable[[], None]], object]
"""Does something in a thread, some time."""


class Prices:
    """The list, once it is there. Belongs to one loop; without a thread it is never loaded."""

    def __init__(self, threads: Threads | None = None) -> None:
        self._threads = threads
        self._timer: asyncio.TimerHandle | None = None
        self._is_over = threads is None
        self._list: Any = None

    def of(self, address: str, model: str) -> PublicModel:
        """What is public of the model of that name at that provider."""
        return PublicModel(self, address, model)

    def want(self) -> None:
        """Load the list soon, unless it was asked for before."""
        if self._timer is None and not self._is_over:
            self._timer = asyncio.get_running_loop().call_later(UNHURRIED, self._begin)

    def load(self) -> None:
        """Load it now. Blocks."""
        try:
            found = importlib.import_module("genai_prices")
            importlib.import_module("genai_prices.data_snapshot").get_snapshot()
        except ImportError:
            return  # it comes with an extra; without it nothing is known
        self._list = found

    def find(self, address: str, model: str, usage: Usage) -> Any | None:
        """The calculation for that usage, or None."""
        if self._list is None:
            return None
        try:
            return self._list.calc_price(
                self._list.Usage(
                    input_tokens=usage.input_tokens,
                    output_tokens=usage.output_tokens,
                    cache_read_tokens=usage.cached_tokens,
                ),
                model,
                provider_api_url=address,
            )
        except (LookupError, ValueError):
            return None  # nobody knows it, or the provider counted what cannot be

    def close(self) -> None:
        """Begin to load nothing any more."""
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()

    def _begin(self) -> None:
        if not self._is_over:
            assert self._threads is not None
            self._is_over = True
            self._threads(self.load)


class PublicModel:
    """One model of the list."""

    def __init__(self, prices: Prices, address: str, model: str) -> None:
        self._prices = prices
        self._address = address
        self._model = model
        self._window: int | None = None

    def want(self) -> None:
        """Say that it will be asked about soon."""
        self._prices.want()

    @property
    def window(self) -> int | None:
        """How many tokens fit."""
        if self._window is None:
            found = self._prices.find(self._address, self._model, Usage())
            self._window = None if found is None else found.model.context_window
        return self._window

    def cost(self, usage: Usage | None) -> float | None:
        """What that much costs, in US dollars."""
        found = None if usage is None else self._prices.find(self._address, self._model, usage)
        return None if found is None else float(found.total_price)
