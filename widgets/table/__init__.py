"""A table of any length that draws only what is seen, and whose selection is by identity."""

from widgets.table.row_filter import RowFilter
from widgets.table.row_table import RowTable
from widgets.table.table_column import Grouping
from widgets.table.table_state import RowCounts

__all__ = ["Grouping", "RowCounts", "RowFilter", "RowTable"]
