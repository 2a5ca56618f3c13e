"""A table of any length that draws only what is seen, and whose selection is by identity."""

from widgets.table.column import Column, Grouping
from widgets.table.filtering import Filter
from widgets.table.messages import Counts
from widgets.table.rowtable import RowTable

__all__ = ["Column", "Counts", "Filter", "Grouping", "RowTable"]
