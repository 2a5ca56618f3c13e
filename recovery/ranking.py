"""Which replica's log is best.

``last-record`` compares (epoch of the last record, log end offset): the rule of Raft and of Kafka's own
truncation, and the only one that keeps acknowledged records when a stale replica has a long tail.
``specification`` compares (current leader epoch, log end offset), as the recovery tool's proposal has it
(unclean-recovery-tool, "Proposed Changes").
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from operator import attrgetter
from typing import NamedTuple

from recovery.model import Lineage, Replica, ReplicaLog, Standing, Survey, Unknown, Why


class Ranking(StrEnum):
    """The order of candidates."""

    LAST_RECORD = "last-record"
    SPECIFICATION = "specification"


class Candidate(NamedTuple):
    """A replica that answered, with the ``key`` (epoch, log end offset) that ranks it."""

    broker: int
    standing: Standing
    log: ReplicaLog
    key: tuple[int, int]

    @property
    def electable(self) -> bool:
        return self.standing is Standing.ELECTABLE


def answered(replica: Replica, ranking: Ranking) -> bool:
    """Whether the replica gave all that ``ranking`` needs of it.

    A broker that died between two questions has not answered. One that answered, but may not be asked for
    its lineage, has: that is a refusal of the ranking (:func:`rank`), not an absence.
    """
    log = replica.log
    if isinstance(log, Unknown):
        return False
    if ranking is Ranking.SPECIFICATION or isinstance(log.lineage, Lineage):
        return True
    return log.lineage.why is not Why.NOT_ANSWERED


def rank(survey: Survey, ranking: Ranking, steady: Sequence[int] = ()) -> tuple[Candidate, ...] | Unknown:
    """Every replica that answered, best first. Fenced ones are among them.

    Of logs that end alike the first of ``steady`` comes first (``PartitionVerdicts.steady``), then the assignment
    order decides. A compacted log that holds more than another is no better: it may have missed deletions that were
    cleaned away elsewhere since.

    Unknown where ``last-record`` was asked for and a replica that answered has no lineage (no READ
    permission, say): the ranking refuses the partition and never falls back to length.
    """
    candidates = []
    for replica in survey.replicas:
        log = replica.log
        if isinstance(log, Unknown):
            continue
        if ranking is Ranking.SPECIFICATION:
            epoch = log.leader_epoch
        elif isinstance(log.lineage, Lineage):
            epoch = log.lineage.last_epoch
        elif log.lineage.why is Why.NOT_ANSWERED:
            continue
        else:
            return Unknown(
                log.lineage.why,
                f"the last record's epoch on broker {replica.broker} ({log.lineage.detail});"
                " last-record needs it, and length alone can destroy acknowledged records",
            )
        candidates.append(Candidate(replica.broker, replica.standing, log, (epoch, log.log_end_offset)))
    places = {broker: place for place, broker in enumerate(steady)}
    candidates.sort(key=lambda candidate: places.get(candidate.broker, len(places)))
    candidates.sort(key=attrgetter("key"), reverse=True)
    return tuple(candidates)
