"""The first pane: what is offline and under min ISR, or every partition."""

from __future__ import annotations

from console.app.main_screen.bars import doubt
from console.app.session.session import Session
from console.change.registry import QUORUM
from console.reading.partition_report import PartitionsView
from console.reading.partitions_pane import PartitionsPane
from recovery.wording.cluster_health_text import stale_advice

_NONE = "no partition is offline or under min ISR"
UNKNOWN = "not known: the cluster has not answered yet"


def update_offline(pane: PartitionsPane, session: Session) -> None:
    """Hands the pane what it shows now."""
    shown = _partitions(session)
    # An empty list must not read as good news where it is not known to be.
    unknown = f"what is offline now is not known: {shown.doubt}" if shown.doubt else _NONE
    pane.table.empty = unknown if shown.reading is not None else UNKNOWN
    pane.update(shown)


def _partitions(session: Session) -> PartitionsView:
    view = session.view
    return PartitionsView(
        view.reading,
        session.rows.partitions,
        view.at if view.at is not None else session.clock(),
        "All partitions" if session.others else "Offline and under min ISR",
        session.draft.partitions,
        first=view.first or 0.0,
        doubt=doubt(session),
        doubt_advice="" if view.health is None else stale_advice(view.health, f"pane {QUORUM}"),
    )
