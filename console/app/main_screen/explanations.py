"""The keys that explain: every key, every word, and every command by its name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from textual.screen import Screen

from console.app.base.key_desk import KeyDesk
from console.app.base.screen_calls import Handlers
from console.app.session.session import Session
from console.change.registry import Action
from recovery.model import TopicPartition
from recovery.wording.glossary import GLOSSARY
from recovery.wording.glossary_now import PartitionNow, meaning_now
from widgets.dialogs.glossary_screen import GlossaryScreen
from widgets.dialogs.help_screen import HelpRow, HelpScreen, HelpSection


def glossary_screen(session: Session, cursor: TopicPartition | None) -> GlossaryScreen:
    """What each word means, and what it means now for that partition where its logs are known."""
    view = session.view
    survey = None if cursor is None else view.surveys.get(cursor)
    if survey is None:
        return GlossaryScreen("", lambda _term: "")
    _, row = session.rows.made_of.get(survey.tp, (None, None))
    now = PartitionNow(
        survey,
        session.choosing.ranking,
        None if row is None else row.decision,
        view.verdicts.get(survey.tp),
    )
    return GlossaryScreen(str(survey.tp), lambda term: meaning_now(term, now))


def proof_screen(session: Session, cursor: TopicPartition | None) -> Screen[Any]:
    """The proofs of the verdicts on that partition, or why there are none."""
    from console.app.base.record_screen import RecordScreen  # noqa: PLC0415  # after the first frame
    from recovery.wording.proof_text import explained_lines  # noqa: PLC0415  # after the first frame

    if cursor is None:
        return RecordScreen("Proof", ("no partition is under the cursor",))
    survey, judged = session.view.surveys.get(cursor), session.view.verdicts.get(cursor)
    if survey is None or (judged is None and survey.state.offline):
        return RecordScreen("Proof", (f"{cursor}: no verdict: it is not judged yet (r refreshes)",))
    return RecordScreen("Proof", tuple(explained_lines(survey, judged)))


GROUPS = ("Move", "Plan", "Quorum", "Safety", "Table", "Cluster", "Take away", "Help")

# Keys of the tables and the filter: they only change what is shown.
TABLE_ROWS = (
    HelpRow("↑ ↓  k j", "row up, row down"),
    HelpRow("PgUp PgDn", "page up, page down"),
    HelpRow("Home End  g G", "first row, last row"),
    HelpRow("Space", "mark the row"),
    HelpRow("← →", "fold, unfold a group"),
    HelpRow("Tab", "from the table to the details, and back"),
)
SIGNS = HelpSection(
    "Signs",
    (
        HelpRow("*", "the row is marked"),
        HelpRow("▲ ▼", "the rows are sorted by that column, upwards or downwards"),
        HelpRow("+4", "this many columns do not fit: the details below show them for the row"),
        HelpRow("LOG END", "an offset, as LOG START and HIGH WM; sizes are in KiB, MiB, GiB"),
        HelpRow("≥5 min", "at least this long: the problem already existed when it was first seen"),
    ),
)


def sections(actions: Iterable[tuple[Action, str]]) -> tuple[HelpSection, ...]:
    """What works here in its groups, with the keys that every table has; then what does nothing now, each reason
    once; then the signs beside the rows, and the words.
    """
    reasons: dict[str, list[HelpRow]] = {}
    working: dict[str, list[HelpRow]] = {group: [] for group in GROUPS}
    working["Table"] += TABLE_ROWS
    for action, why in actions:
        (reasons.setdefault(why, []) if why else working[action.group]).append(
            HelpRow(action.shown, action.what)
        )
    return (
        *(HelpSection(group, tuple(rows)) for group, rows in working.items() if rows),
        *(HelpSection(f"Not now: {why}", tuple(rows), works=False) for why, rows in reasons.items()),
        SIGNS,
        HelpSection("Words (W searches them)", tuple(HelpRow(e.term, e.meaning) for e in GLOSSARY)),
    )


class Explanations:
    """``actions``: every action with why it does nothing now; ``cursor``: the partition for which the words are
    explained; ``push`` opens a screen.
    """

    def __init__(self, desk: KeyDesk) -> None:
        self._desk = desk

    def handlers(self) -> Handlers:
        return {
            "help": lambda: self._desk.push(HelpScreen(sections(self._desk.actions()))),
            "glossary": lambda: self._desk.push(glossary_screen(self._desk.session, self._desk.cursor())),
            "proof": lambda: self._desk.push(proof_screen(self._desk.session, self._desk.cursor())),
            "palette": self._desk.open_palette,
        }
