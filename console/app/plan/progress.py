"""How far long work is: told from the backend's thread, drawn at a pace that a slow line can follow."""

from __future__ import annotations

from collections.abc import Callable

DRAWN_EVERY = 0.2


class Batches:
    """The newest of what was told. ``what`` names the work until the backend does."""

    def __init__(self, what: str, clock: Callable[[], float]) -> None:
        self.what = what
        self.done = 0
        self.of = 0
        self._clock = clock
        self._drawn = float("-inf")

    def tell(self, what: str, done: int, of: int) -> bool:
        """Whether it is time to draw it; the end always is."""
        self.what, self.done, self.of = what, done, of
        now = self._clock()
        if done < of and now - self._drawn < DRAWN_EVERY:
            return False
        self._drawn = now
        return True
