"""The help, from the registry: every key, and why one does nothing now."""

from __future__ import annotations

from collections.abc import Iterable

from console.operations.registry import Action
from widgets.dialogs.help_screen import HelpRow, HelpSection

GROUPS = ("Move", "Plan", "Quorum", "Safety", "Table", "Cluster", "Take away", "Help")

# Keys of the tables and of the filter themselves: they change nothing but what is seen.
TABLE_ROWS = (
    HelpRow("↑ ↓  k j", "row up, row down", ""),
    HelpRow("PgUp PgDn", "page up, page down", ""),
    HelpRow("Home End  g G", "first row, last row", ""),
    HelpRow("Space", "mark the row", ""),
    HelpRow("← →", "fold, unfold a group", ""),
    HelpRow("Tab", "from the table to the details, and back", ""),
)
SIGNS = HelpSection(
    "Signs",
    (
        HelpRow("*", "the row is marked", ""),
        HelpRow("▲ ▼", "the rows are sorted by that column, upwards or downwards", ""),
        HelpRow("+4", "so many columns have no room: the details below show them for the row", ""),
        HelpRow("≥5 min", "for at least so long: it was in trouble already when it was first seen", ""),
    ),
)


def sections(actions: Iterable[tuple[Action, str]]) -> tuple[HelpSection, ...]:
    """All actions in their groups, with the keys that every table has, and the signs beside its rows."""
    known = tuple(actions)
    return (
        *(
            HelpSection(
                group,
                (
                    *(TABLE_ROWS if group == "Table" else ()),
                    *(HelpRow(a.shown, a.what, why) for a, why in known if a.group == group),
                ),
            )
            for group in GROUPS
        ),
        SIGNS,
    )
