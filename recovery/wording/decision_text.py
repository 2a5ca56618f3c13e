"""The reasons of decisions: why a leader is chosen, or nobody."""

from __future__ import annotations

from collections.abc import Sequence

from recovery.acknowledged.verdict import EvidenceKind, Verdict
from recovery.model import Survey, Unknown
from recovery.old_leaders import OldLeader
from recovery.ranking import Candidate, Ranking
from recovery.wording.quantity_text import both
from recovery.wording.replica_text import acting_text
from recovery.wording.verdict_text import verdict_text

REASSIGNING = (
    "a reassignment is in progress, which Kafka neither finishes nor cancels without a leader: bring a member of"
    " the ISR or ELR back. An unclean election elects the first live replica of the assignment, whatever its log"
    " lacks"
)


def best_text(
    survey: Survey,
    chosen: Candidate,
    ranked: tuple[Candidate, ...],
    ranking: Ranking,
    steady: Sequence[int] = (),
) -> str:
    """Why ``chosen`` is the best of those that answered; ``steady`` as in :func:`recovery.ranking.rank`."""
    what = "last record's epoch" if ranking is Ranking.LAST_RECORD else "leader epoch"
    epoch, end = chosen.key
    best = f"best of {len(ranked)} of {len(survey.replicas)} that answered: {what} {epoch}, log end {end:,}"
    alike = [c.broker for c in ranked if c.key == chosen.key and c.broker in steady]
    if survey.compacted is None or chosen.broker not in alike or len(alike) < 2:
        return best
    others = both(tuple(broker for broker in alike if broker != chosen.broker))
    return f"{best}; of the logs that end alike {chosen.broker} was in the ISR for the longest, {others} not longer"


def both_branches_text(chosen: Candidate, ranked: tuple[Candidate, ...], verdict: Verdict) -> str:
    """Why the best by ranking is not elected where another replica has committed records that it lacks."""
    holders = {b for one in verdict.evidence if one.kind is EvidenceKind.HIGH_WATERMARK for b in one.brokers}
    branches = [
        f"broker {one.broker} holds up to {one.log.log_end_offset:,} in epoch {one.key[0]}"
        for one in ranked
        if one.broker == chosen.broker or one.broker in holders
    ]
    return (
        f"the best by ranking, broker {chosen.broker}, {verdict_text(verdict)}: {'; '.join(branches)}."
        " Each choice cuts off the other branch: choose by hand, and rescue the other branch before the election"
    )


def old_leader_text(writing: tuple[OldLeader, ...]) -> str:
    """Why nobody is elected while a broker that does not know that it was replaced takes writes."""
    one = len(writing) == 1
    stop = "stop its process, or mend its network" if one else "stop their processes, or mend their network"
    return (
        f"{acting_text(writing)}, and an election cuts off what {'it takes' if one else 'they take'}: {stop}"
    )


def no_disk_left_text(failed: tuple[int, ...]) -> str:
    """Why nobody can be elected where the disks of all replicas have failed."""
    disks = "the disk of broker" if len(failed) == 1 else "the disks of brokers"
    return f"{disks} {both(failed)} FAILED, and no other replica is left: without reading it the records are gone"


def reassignment_text(survey: Survey, *, detailed: bool) -> str:
    """Why nobody is elected during a reassignment, or while it is not known whether there is one.

    ``detailed``: also whom an unclean election would elect now, which a snapshot of many clusters does not tell.
    """
    if isinstance(survey.reassigning, Unknown):
        return f"whether a reassignment is in progress is not known ({survey.reassigning})"
    first = next((replica for replica in survey.replicas if replica.electable), None)
    if first is None or not detailed:
        return REASSIGNING
    log = first.log
    if isinstance(log, Unknown):
        holds = "its log is not known"
    elif log.log_end_offset <= log.log_start_offset:
        holds = "its log is EMPTY"
    else:
        holds = f"log end {log.log_end_offset:,}"
    return f"{REASSIGNING}: broker {first.broker} now, {holds}"
