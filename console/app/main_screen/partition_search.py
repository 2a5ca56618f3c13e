"""Leads to one partition in every pane: typed once, the cursor is on it wherever it is listed."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from textual.worker import Worker

from console.app.base.key_desk import KeyDesk
from console.app.base.screen_calls import Handlers
from console.change.registry import DIRS, PANES, REPLICAS, TIMELINE
from console.jobs.timeline.timeline_report import TimelineRow
from recovery.model import TopicPartition, Unknown
from widgets.dialogs.partition_finder import PartitionFinder
from widgets.table import RowTable
from widgets.text import Tone

BOOKMARKS = 9


class PartitionSearch:
    """``table`` is that of the open pane; ``start`` runs a coroutine, instead of the one before."""

    def __init__(self, desk: KeyDesk) -> None:
        self._desk = desk
        self._bookmarks: tuple[TopicPartition, ...] = ()
        self._found: TopicPartition | None = None
        self._not_led: frozenset[str] = frozenset()

    def handlers(self) -> Handlers:
        return {"find": lambda: self._desk.tasks.begin("finding", self._find(), types=True)}

    def pane_shown(self) -> None:
        """Puts the cursor on the partition that was found, the first time that a pane is opened since."""
        if self._found is not None and self._desk.navigation.pane in self._not_led:
            _worker: Worker[None] = self._desk.find(self._lead(self._found))

    def forget(self) -> None:
        """Another cluster has other partitions."""
        self._bookmarks, self._found, self._not_led = (), None, frozenset()

    async def _find(self) -> None:
        partitions = self._desk.session.view.partitions
        known = [] if partitions is None else [state.tp for state in partitions.states]
        found = await self._desk.ask(PartitionFinder(known, self._bookmarks))
        self._desk.tasks.asks_no_more()
        if found is None:
            return
        self._bookmarks = (found, *(tp for tp in self._bookmarks if tp != found))[:BOOKMARKS]
        self._found, self._not_led = found, frozenset(PANES)
        filtered = self._desk.table().filtered
        if await self._lead(found):
            self._desk.say(
                f"{found}: the cursor is on it; other panes that list it open there too", Tone.INFO
            )
            return
        self._desk.navigation.go(REPLICAS, found, drill=True)
        where = "the filter of that pane does not show it" if filtered else "that pane does not list it"
        self._desk.say(f"{found}: {where}; here are its replicas. Esc goes back", Tone.INFO)

    async def _lead(self, found: TopicPartition) -> bool:
        pane, table = self._desk.navigation.pane, self._desk.table()
        self._not_led -= {pane}
        if pane == REPLICAS:
            self._desk.navigation.go(REPLICAS, found)
            return True
        await table.wait_settled()
        key = self._key_in(pane, found, table)
        if key is not None and not table.shows(key) and table.unfold_for(key):
            await table.wait_settled()
        if key is None or table is not self._desk.table() or not table.move_to(key):
            return False
        self._desk.navigation.select(found)
        return True

    def _key_in(self, pane: str, found: TopicPartition, table: RowTable[Any]) -> Hashable | None:
        """The key of the row that stands for the partition: itself, its log dir, or its newest event."""
        if pane == DIRS:
            for broker, dirs in (self._desk.session.view.log_dirs or {}).items():
                for one in () if isinstance(dirs, Unknown) else dirs:
                    if any(replica.tp == found for replica in one.replicas):
                        return broker, one.path
            return None
        if pane == TIMELINE:
            events = (row for row in reversed(table.shown_rows) if isinstance(row, TimelineRow))
            return next((row.key for row in events if str(found) in row.partitions), None)
        return found
