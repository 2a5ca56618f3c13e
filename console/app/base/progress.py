"""The progress of a task: reported on the backend's thread, drawn slowly enough for a slow connection."""

from __future__ import annotations

from collections.abc import Callable

from backends.base.protocol import Progress
from console.app.session.session import Session

DRAWN_EVERY = 0.2


class Batches:
    """The newest report. ``what`` names the task until the backend does."""

    def __init__(self, what: str, clock: Callable[[], float]) -> None:
        self.what = what
        self.done = 0
        self.of = 0
        self._clock = clock
        self._drawn = float("-inf")

    def tell(self, what: str, done: int, of: int) -> bool:
        """Whether it is time to draw it; the end is always drawn."""
        self.what, self.done, self.of = what, done, of
        now = self._clock()
        if done < of and now - self._drawn < DRAWN_EVERY:
            return False
        self._drawn = now
        return True


class TaskProgress:
    """``batches`` is the progress of the latest task, None if it has none. ``redraw`` draws it."""

    def __init__(self, session: Session, redraw: Callable[[], None]) -> None:
        self._session = session
        self._redraw = redraw
        self.batches: Batches | None = None

    def begin(self, what: str) -> Progress:
        """The function that the backend calls with its progress."""
        batches = self.batches = Batches(what, self._session.clock)

        def report(doing: str, done: int, of: int) -> None:
            if batches.tell(doing, done, of):
                self._session.from_thread(self._redraw)

        return report

    def end(self) -> None:
        self.batches = None
