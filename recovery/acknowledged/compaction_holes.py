"""Whether a compacted log may lack records within its own offsets."""

from __future__ import annotations

from collections.abc import Mapping

from recovery.acknowledged.partition_facts import PartitionFacts
from recovery.acknowledged.verdict import Condition, ConditionKind
from recovery.model import ReplicaLog, Unknown


def compaction_condition(
    facts: PartitionFacts, logs: Mapping[int, ReplicaLog], broker: int
) -> Condition | None:
    """The condition under which the candidate has a record for each of its offsets; None: no condition is needed.

    The log cleaner removes a record if the same log holds a newer one of its key. If the newer one is truncated
    later, the log lacks both. The condition is doubtful if another log of the same offsets has another size. Where
    only an earlier topic of this name was compacted, brokers may have compacted this one by its configuration.
    """
    once = not isinstance(facts.in_sync, Unknown) and facts.in_sync.once_compacted
    if facts.compacted is False and not once:
        return None
    mine = logs[broker]
    differs = tuple(
        other
        for other, log in logs.items()
        if other != broker and _same_offsets(log, mine) and -1 not in (log.size, mine.size)
        if log.size != mine.size
    )
    return Condition(ConditionKind.NO_COMPACTION_HOLES, (broker,), doubtful=bool(differs))


def _same_offsets(one: ReplicaLog, other: ReplicaLog) -> bool:
    return (one.log_start_offset, one.log_end_offset, one.lineage) == (
        other.log_start_offset,
        other.log_end_offset,
        other.lineage,
    )
