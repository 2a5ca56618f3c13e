"""Proofs that one known log holds every acknowledged record, from the partition's history in the metadata log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from recovery.acknowledged.broker_restarts import LastStop
from recovery.acknowledged.complete_logs import CompleteLog, EarlierBranch
from recovery.acknowledged.in_sync_history import DoubtfulElection, InSyncHistory, Whole
from recovery.acknowledged.lacking_spans import lacking
from recovery.acknowledged.partition_facts import PartitionFacts
from recovery.acknowledged.verdict import Condition, ConditionKind, Evidence, EvidenceKind
from recovery.model import ReplicaLog


def proofs_from_history(
    facts: PartitionFacts,
    logs: Mapping[int, ReplicaLog],
    history: InSyncHistory,
    losses: Iterable[Evidence],
) -> list[CompleteLog]:
    """Each known log that was never left out of an ISR of min ISR, but for those that visibly lost records since.

    Several such logs together prove no more than one of them: a log that ranks highest holds what each of them has
    kept, and one that lost records is no witness. ``losses`` is what :func:`records_lost` found.
    """
    lost = {broker for one in losses for broker in one.brokers}
    known = {broker: history.whole(broker) for broker in logs if broker not in lost}
    whole = {broker: found for broker, found in known.items() if found is not None}
    earlier = tuple(_earlier_branches(facts, logs, history))
    ranks = not any(election.unclean for election in history.doubts)
    unknown_files = history.rests_on_files
    values = (Condition(ConditionKind.MIN_ISR_NEVER_LOWER, unknown_files),) if unknown_files else ()
    if history.rests_on_snapshot:
        values = (*values, Condition(ConditionKind.NOT_MADE_AGAIN))
    proofs = []
    for broker, found in whole.items():
        conditions = (*values, *_log_not_shortened(facts, broker, found))
        proofs.append(CompleteLog(broker, (_evidence(history, broker, found),), conditions, earlier, ranks))
    return proofs


def records_lost(
    facts: PartitionFacts, logs: Mapping[int, ReplicaLog], history: InSyncHistory
) -> Iterator[Evidence]:
    """The logs that were whole, restarted, and lack what another one's high watermark proves committed, although
    that one left the ISR before them: each member of an ISR had what was committed with it.
    """
    for broker, log in logs.items():
        whole = history.whole(broker)
        if whole is None or not whole.restarts:
            continue
        marks = [
            pair.committed[-1].end
            for other in logs
            if other != broker and _left_before(history, other, whole.last)
            if (pair := lacking(facts.survey, log, logs[other])).committed
        ]
        if marks:
            yield Evidence(EvidenceKind.RECORDS_LOST, (broker,), max(marks))


def _left_before(history: InSyncHistory, broker: int, index: int) -> bool:
    """Whether the broker was in the ISR last before that interval, or then, and no unclean election followed that
    may have cut off what it held.
    """
    last = history.last_in_sync(broker, history.newest)
    if last is None or last > index:
        return False
    return not any(election.unclean and election.at > last for election in history.doubts)


def _evidence(history: InSyncHistory, broker: int, whole: Whole) -> Evidence:
    """``since_ms``: when it left the ISR; None: it is in it."""
    until = None if whole.last == history.newest else history.intervals[whole.last + 1].since_ms
    return Evidence(EvidenceKind.NEVER_MIN_ISR_WITHOUT, (broker,), since_ms=until)


def _log_not_shortened(facts: PartitionFacts, broker: int, whole: Whole) -> tuple[Condition, ...]:
    """The condition that this log was not shortened; none where it certainly was not.

    A log that was read from a disk may lack what its host had not written to it when it lost power, unless the disk
    has the file of a clean stop.
    """
    read = any(
        one.broker == broker and one.disk_read_ms is not None and not one.disk_stopped_cleanly
        for one in facts.survey.replicas
    )
    if not whole.restarts and not read:
        return ()
    doubtful = any(restart.stop is LastStop.UNCLEAN for restart in whole.restarts)
    return (Condition(ConditionKind.RECORDS_KEPT, (broker,), doubtful=doubtful),)


def _earlier_branches(
    facts: PartitionFacts, logs: Mapping[int, ReplicaLog], history: InSyncHistory
) -> Iterator[EarlierBranch]:
    silent = [replica.broker for replica in facts.survey.replicas if replica.broker not in logs]
    for election in history.doubts:
        yield EarlierBranch(
            election.epoch,
            tuple(history.may_hold_branch(election, silent)),
            None if election.unclean else _leader_log_not_shortened(election),
            Evidence(EvidenceKind.UNCLEAN_ELECTION, (election.leader,), since_ms=election.since_ms),
        )
    if not history.known_from_start:
        first = history.intervals[0]
        never = tuple(b for b in silent if history.last_in_sync(b, history.newest) is None)
        before = Condition(ConditionKind.NO_UNCLEAN_ELECTION, since_ms=first.since_ms)
        evidence = Evidence(EvidenceKind.UNCLEAN_ELECTION, since_ms=first.since_ms)
        yield EarlierBranch(first.registration.leader_epoch, never, before, evidence)


def _leader_log_not_shortened(election: DoubtfulElection) -> Condition:
    doubtful = any(restart.stop is LastStop.UNCLEAN for restart in election.restarts)
    return Condition(ConditionKind.RECORDS_KEPT, (election.leader,), doubtful=doubtful)
