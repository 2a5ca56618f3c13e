"""The actions for any table: open a row, filter, sort, group, mark."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple

from console.app.base.screen_calls import Handlers, Say
from console.reading.partition_row import PartitionRow
from recovery.model import PartitionState, TopicPartition
from recovery.wording.quantity_text import counted
from widgets.bars.filter_bar import FilterBar
from widgets.table import RowFilter, RowTable
from widgets.text import Tone


class OpenTable(NamedTuple):
    """The table of the open pane, and the key of that pane."""

    pane: str
    table: RowTable[Any]


class TableActions:
    """Acts on the table of the open pane. Each table keeps its own filter. ``filtered`` is called after each change
    of a filter.
    """

    def __init__(
        self,
        current: Callable[[], OpenTable],
        filter_bar: Callable[[], FilterBar],
        say: Say,
        filtered: Callable[[], None],
    ) -> None:
        self._current = current
        self._filter_bar = filter_bar
        self._say = say
        self._filtered = filtered
        self._filters: dict[str, RowFilter | None] = {}

    @property
    def _table(self) -> RowTable[Any]:
        return self._current().table

    def handlers(self) -> Handlers:
        return {
            "open": self._open_row,
            "filter": lambda: self._filter_bar().open(),
            "mark_all": self._mark_all,
            "unmark": self._unmark,
            "range": self._mark_range,
            "sort": self._sort,
            "reverse": self._reverse,
            "group": self._group,
            "fold": self._fold,
        }

    def _open_row(self) -> None:
        if self._table.counts.shown:
            self._table.action_activate()

    def filter_by(self, row_filter: RowFilter | None) -> None:
        """Applies the bar's filter to the open pane's table."""
        pane, table = self._current()
        self._filters[pane] = row_filter
        table.filter_by(row_filter)
        self._filtered()

    def clear_filter(self) -> bool:
        """Removes the open pane's filter; False if there is none."""
        if self._filters.get(self._current().pane) is None:
            return False
        self.filter_by(None)
        self.close_filter_bar()
        return True

    def close_filter_bar(self) -> None:
        """The bar belongs to the open pane."""
        self._filter_bar().close()

    def _sort(self) -> None:
        """Sorts by the next column; after the last one, in the original order."""
        choices = [None, *(column.id for column in self._table.columns)]
        now = choices.index(self._table.sort_state[0])
        self._table.sort_by(choices[(now + 1) % len(choices)])
        self._say_order()

    def _reverse(self) -> None:
        column, reverse = self._table.sort_state
        if column is not None:
            self._table.sort_by(column, not reverse)
        self._say_order()

    def _say_order(self) -> None:
        """In words: the column may have no room on the screen."""
        column, reverse = self._table.sort_state
        title = next((c.title for c in self._table.columns if c.id == column), None)
        if title is None:
            self._say("in the order they came in; s sorts by the first column", Tone.INFO)
            return
        way = "from high to low" if reverse else "from low to high"
        self._say(f"sorted by {title}, {way}; s: the next column, S: the other way", Tone.INFO)

    def _group(self) -> None:
        """Groups in the next way that the pane has; after the last one not at all."""
        table = self._table
        known = {g.id: g.title for g in table.groupings}
        ways = (None, *known)
        now = ways[(ways.index(table.grouping) + 1) % len(ways)] if table.grouping in ways else None
        table.group_by(now)
        message = "not grouped any more" if now is None else f"grouped {known[now]}: F folds all, left one"
        self._say(f"{message}; t: the next one", Tone.INFO)

    def _fold(self) -> None:
        """Folds all groups, or unfolds them; without groups it makes the first ones, folded."""
        table = self._table
        if table.grouping is None:
            if not table.groupings:
                self._say("the rows of this pane have no groups", Tone.WARN)
                return
            self._group()
        folded = table.fold_all()
        self._say("all groups are folded; F unfolds them" if folded else "all groups are unfolded", Tone.INFO)

    def _unmark(self) -> None:
        if not self._table.marks:
            self._say("no row is marked: Space marks one", Tone.INFO)
        self._table.clear_marks()

    def _mark_range(self) -> None:
        self._table.mark_range()

    def _mark_all(self) -> None:
        # Of many rows the marks are counted later: the filter's rows are known now.
        shown = self._table.counts.shown
        self._table.mark_all_shown()
        self._say(f"marked: {counted(shown, 'row')} shown here; u removes all marks", Tone.INFO)


def row_gone_text(
    event: RowTable.RowGone, states: Iterable[PartitionState], shown: int, lost: str = ""
) -> str:
    """Why the row under the cursor is gone, as far as ``states`` show it, and where the cursor is now.
    ``shown``: how many rows are left. ``lost``: what its new leader lacks, "" for nothing.
    """
    name = row_name(event.key)
    if lost:
        return f"{lost}."
    gone = f"{name} is no longer in this list."
    if isinstance(event.row, PartitionRow) and event.row.state.offline:
        offline = {row.state.tp for row in event.before if row.state.offline} | {event.key}
        led = {state.tp: state.leader for state in states if not state.offline and state.tp in offline}
        if event.key in led:
            gone = f"{name} has a leader again (broker {led[event.key]})."
            if len(led) > 1:
                gone = (
                    f"{len(led):,} partitions have a leader again, such as {name} (broker {led[event.key]})."
                )
    if not shown:
        return f"{gone} The list is empty."
    return gone if event.now is None else f"{gone} The cursor is on {row_name(event.now)}."


def row_name(key: Hashable) -> str:
    """A row as a person names it, by its table's key: ``orders-3``, ``2:/kafka/1`` (a log dir), ``101 dku1K2nf``
    (a controller and its directory id), ``transaction 7 payments-0``. A key of any shape has a name.
    """
    if isinstance(key, TopicPartition) or not isinstance(key, tuple):
        return str(key)
    parts = [str(part) for part in key]
    if len(parts) == 2 and parts[1].startswith("/"):
        return ":".join(parts)
    return " ".join(part for part in parts if part)
