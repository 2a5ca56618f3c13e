"""The health of a whole cluster in one line, the worst first."""

from __future__ import annotations

from collections.abc import Iterator

from recovery.cluster_health import ClusterHealth, QuorumState
from recovery.wording.quantity_text import counted

FEW = 4
"""So many brokers or voters are named; more are counted."""

STALE_STATES = (
    "No controller leads: nobody can be elected, and leaders and ISRs are shown as they were before."
    " Mend the quorum first (ktriage quorum status)."
)

_QUORUM = {
    QuorumState.NO_LEADER: "quorum NO LEADER",
    QuorumState.CANNOT_COMMIT: "quorum CANNOT COMMIT",
    QuorumState.NOT_TOLD: "quorum not told",
}


def health_line(health: ClusterHealth) -> str:
    """Such as ``quorum NO LEADER · broker 3 down · 1 disk failed · 4 offline``."""
    parts = list(_parts(health))
    if health.current and not health.offline:
        parts.append("no partition offline" if not health.unseen else "no partition offline that may be seen")
    return " · ".join(parts)


def _parts(health: ClusterHealth) -> Iterator[str]:
    if health.quorum in _QUORUM:
        yield _QUORUM[health.quorum]
    if health.dead_voters:
        yield _down(health.dead_voters, "voter")
    if health.brokers_down:
        yield _down(health.brokers_down, "broker")
    if health.failed_dirs:
        yield f"{counted(health.failed_dirs, 'disk')} failed"
    if health.offline:
        yield f"{health.offline:,} offline"
    if health.under_min_isr:
        yield f"{health.under_min_isr:,} under min ISR"


def _down(ids: tuple[int, ...], what: str) -> str:
    if len(ids) > FEW:
        return f"{len(ids):,} {what}s down"
    names = ", ".join(map(str, ids))
    return f"{what} {names} down" if len(ids) == 1 else f"{what}s {names} down"
