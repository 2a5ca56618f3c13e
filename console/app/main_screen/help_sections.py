"""The help, from the registry: every key, and why a key is disabled."""

from __future__ import annotations

from collections.abc import Iterable

from console.operations.registry import Action
from recovery.wording.glossary import GLOSSARY
from widgets.dialogs.help_screen import HelpRow, HelpSection

GROUPS = ("Move", "Plan", "Quorum", "Safety", "Table", "Cluster", "Take away", "Help")

# Keys of the tables and the filter: they only change what is shown.
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
        HelpRow("+4", "this many columns do not fit: the details below show them for the row", ""),
        HelpRow("LOG END", "an offset, as LOG START and HIGH WM; sizes are in KiB, MiB, GiB", ""),
        HelpRow("≥5 min", "at least this long: the problem already existed when it was first seen", ""),
    ),
)


def sections(actions: Iterable[tuple[Action, str]]) -> tuple[HelpSection, ...]:
    """All actions in their groups, with the keys that every table has, the signs beside its rows, and the words."""
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
        HelpSection("Words (W searches them)", tuple(HelpRow(e.term, e.meaning) for e in GLOSSARY)),
    )
