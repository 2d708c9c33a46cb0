"""Public prices and context windows of models.

The list is a large library that takes a fifth of a second to load. Nothing waits for it: a thread
loads it while a model takes its time to answer. Unknown values are None.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable
from typing import Any, Final

from keryx.events import Usage

# A local server, which has no public price, answers within this time; remote ones do not.
LOAD_DELAY: Final = 0.1

Threads = Callable[[Callable[[], None]], object]
"""Runs a function in a thread, at some time."""


class Prices:
    """The price list, once it is loaded. Belongs to one loop; without threads it never is."""

    def __init__(self, run_in_thread: Threads | None = None) -> None:
        self._run_in_thread = run_in_thread
        self._timer: asyncio.TimerHandle | None = None
        self._is_started = run_in_thread is None
        self._library: Any = None
        self._is_missing = False

    def of(self, address: str, model: str) -> PublicModel:
        """Return the public data of a model at a provider."""
        return PublicModel(self, address, model)

    def load_soon(self) -> None:
        """Load the list soon, unless it is loaded already."""
        if self._timer is None and not self._is_started:
            self._timer = asyncio.get_running_loop().call_later(LOAD_DELAY, self._load_in_thread)

    @property
    def is_loaded(self) -> bool:
        """Whether there is nothing more to load."""
        return self._library is not None or self._is_missing

    def load(self) -> None:
        """Load the list now. Blocks."""
        try:
            library = importlib.import_module("genai_prices")
            importlib.import_module("genai_prices.data_snapshot").get_snapshot()
        except ImportError:
            self._is_missing = True  # the library is an optional extra
            return
        self._library = library

    def calculate(
        self, address: str, model: str, usage: Usage, cache_writes: int = 0
    ) -> Any | None:
        """Return the price calculation for this usage, or None."""
        if self._library is None:
            return None
        try:
            return self._library.calc_price(
                self._library.Usage(
                    input_tokens=usage.input_tokens,
                    output_tokens=usage.output_tokens,
                    cache_read_tokens=usage.cached_tokens,
                    cache_write_tokens=cache_writes,
                ),
                model,
                provider_api_url=address,
            )
        except (LookupError, ValueError):
            return None  # the model is unknown, or the provider sent impossible counts

    def close(self) -> None:
        """Do not load the list any more."""
        self._is_started = True
        if self._timer is not None:
            self._timer.cancel()

    def _load_in_thread(self) -> None:
        if not self._is_started:
            assert self._run_in_thread is not None
            self._is_started = True
            self._run_in_thread(self.load)


class PublicModel:
    """One model of the list."""

    def __init__(self, prices: Prices, address: str, model: str) -> None:
        self._prices = prices
        self._address = address
        self._model = model
        self._window: int | None = None

    def load_soon(self) -> None:
        """Load the price list soon."""
        self._prices.load_soon()

    @property
    def window(self) -> int | None:
        """The size of the context window in tokens."""
        if self._window is None:
            calculation = self._prices.calculate(self._address, self._model, Usage())
            self._window = None if calculation is None else calculation.model.context_window
        return self._window

    @property
    def is_known(self) -> bool:
        """Whether the loaded list has a price for this model."""
        return self._prices.calculate(self._address, self._model, Usage()) is not None

    def cost(self, usage: Usage | None, cache_writes: int = 0) -> float | None:
        """Return the cost of this usage in US dollars; `cache_writes` are part of its input."""
        if usage is None:
            return None
        calculation = self._prices.calculate(self._address, self._model, usage, cache_writes)
        return None if calculation is None else float(calculation.total_price)
