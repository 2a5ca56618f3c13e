"""Which pane is open, for which partition, and the way back."""

from __future__ import annotations

from collections.abc import Callable

from console.app.session.moves import Moves, Place
from console.app.session.view import ViewRequest
from console.operations.registry import DIRS, ELIGIBLE, OFFLINE, REPLICAS
from recovery.model import TopicPartition


class Navigation:
    """``cursor`` is the partition that the panes show. ``want`` is called with the data that the open pane
    needs, ``moved`` when another pane is open.
    """

    def __init__(self, want: Callable[[ViewRequest], None], moved: Callable[[], None]) -> None:
        self._want = want
        self._moved = moved
        self._moves = Moves(Place(OFFLINE, None))
        self.cursor: TopicPartition | None = None

    @property
    def pane(self) -> str:
        """The key of the open pane."""
        return self._moves.here.pane

    def trail(self, cluster: str) -> tuple[str, ...]:
        """The breadcrumbs."""
        return self._moves.trail(cluster)

    def go(self, pane: str, key: TopicPartition | None = None, *, drill: bool = False) -> None:
        """Opens another pane; ``drill``: Esc leads back to this one."""
        if key is not None:
            self.cursor = key
        self._moves = self._moves.to(Place(pane, key, drill))
        self._moved()
        self.request_data()

    def back(self) -> None:
        self._moves = self._moves.back()
        self._moved()
        self.request_data()

    def select(self, partition: TopicPartition) -> bool:
        """Moves the cursor to that partition; False if it was already there."""
        if partition == self.cursor:
            return False
        self.cursor = partition
        self.request_data()
        return True

    def request_data(self) -> None:
        """Requests the logs of the partition under the cursor, with their whole lineage if they are drawn."""
        shown = frozenset() if self.cursor is None else frozenset({self.cursor})
        deep = self.cursor if self.pane == REPLICAS else None
        self._want(ViewRequest(shown, deep, self.pane in (DIRS, ELIGIBLE)))
