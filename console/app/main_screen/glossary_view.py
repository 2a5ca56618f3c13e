"""The glossary for the partition under the cursor."""

from __future__ import annotations

from console.app.session.session import Session
from recovery.model import TopicPartition
from recovery.wording.glossary_now import PartitionNow, meaning_now
from widgets.dialogs.glossary_screen import GlossaryScreen


def glossary_screen(session: Session, cursor: TopicPartition | None) -> GlossaryScreen:
    """What each word means, and what it means now for that partition where its logs are known."""
    view = session.view
    survey = None if cursor is None else view.surveys.get(cursor)
    if survey is None:
        return GlossaryScreen("", lambda _term: "")
    _, row = session.rows.made_of.get(survey.tp, (None, None))
    judged = view.verdicts.get(survey.tp)
    now = PartitionNow(
        survey,
        session.choosing.ranking,
        None if row is None else row.decision,
        None if judged is None else judged.verdicts,
    )
    return GlossaryScreen(str(survey.tp), lambda term: meaning_now(term, now))
