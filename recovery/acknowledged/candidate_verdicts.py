"""The verdict of every candidate of one partition."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from recovery.acknowledged.automatic_elections import automatic_elections
from recovery.acknowledged.complete_logs import (
    CompleteLog,
    EarlierBranch,
    emptied,
    key,
    proofs_without_history,
)
from recovery.acknowledged.in_sync_history import InSyncHistory
from recovery.acknowledged.lacking_spans import LackingSpans, joined, lacking
from recovery.acknowledged.metadata_log_proofs import proofs_from_history, records_lost
from recovery.acknowledged.partition_facts import PartitionFacts
from recovery.acknowledged.verdict import (
    Condition,
    ConditionKind,
    Decider,
    DeciderKind,
    Evidence,
    EvidenceKind,
    PartitionVerdicts,
    Verdict,
    VerdictKind,
)
from recovery.loss import count, loss, without
from recovery.model import EpochSpan, ReplicaLog, Unknown
from recovery.old_leaders import growing_logs, may_acknowledge, old_leaders

# Whether a compacted log may lack records within its own offsets.


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


def partition_verdicts(facts: PartitionFacts) -> PartitionVerdicts:
    """The verdict of each replica that reported its log and epochs, and which replicas Kafka elects by itself."""
    judge = _Partition(facts)
    found = {broker: judge.verdict(broker) for broker in judge.logs}
    return PartitionVerdicts(
        found, automatic_elections(facts, found), facts, old_leaders(facts.survey), judge.steady()
    )


class _Bound(NamedTuple):
    """At most ``offsets`` acknowledged offsets are lost, in ``spans``, if ``conditions`` hold. None: unknown."""

    offsets: int | None
    spans: tuple[EpochSpan, ...]
    evidence: tuple[Evidence, ...]
    conditions: tuple[Condition, ...]


class _Partition:
    """The facts that are the same for all candidates of a partition."""

    def __init__(self, facts: PartitionFacts) -> None:
        self.facts = facts
        self.logs = facts.known_logs()
        self.silent = tuple(r.broker for r in facts.survey.replicas if r.broker not in self.logs)
        self.growing = growing_logs(facts.survey)
        self.history = None if isinstance(facts.in_sync, Unknown) else facts.in_sync
        self._alone = () if self.history is None or not self.silent else _led_alone(self.history, self.logs)
        self._lost = () if self.history is None else tuple(records_lost(facts, self.logs, self.history))
        self._replaced = tuple(
            broker
            for broker in self.logs
            if self.history is not None and self._is_emptied(broker) and self.history.lost_disk(broker)
        )
        self.proofs: Sequence[CompleteLog] = (
            proofs_without_history(facts, self.logs)
            if self.history is None
            else proofs_from_history(facts, self.logs, self.history, self._lost)
        )

    def verdict(self, broker: int) -> Verdict:
        mine = self.logs[broker]
        pairs = {
            other: lacking(self.facts.survey, mine, log)
            for other, log in self.logs.items()
            if other != broker
        }
        committed = _all(pairs, committed=True)
        spans = _all(pairs, committed=False)
        at_least = count(committed)
        bound = self._still_growing(broker, self._bound(broker, pairs, spans, at_least))
        marks = tuple(
            Evidence(EvidenceKind.HIGH_WATERMARK, (other,), self.logs[other].high_watermark)
            for other, pair in pairs.items()
            if pair.committed
        )
        none = bound.offsets == 0 and not at_least
        kind = VerdictKind.NONE if none else VerdictKind.SOME if at_least else VerdictKind.OPEN
        holes = compaction_condition(self.facts, self.logs, broker)
        known = broker in self._replaced and not none
        emptied = None if known else self._emptied(broker)
        more = tuple(one for one in (holes, emptied) if one is not None)
        conditions = (*bound.conditions, *more)
        touched = joined(committed, bound.spans)
        since = None if none or self.history is None else self.history.min_isr_reached_without(broker)
        replaced = (Evidence(EvidenceKind.DISK_REPLACED, self._replaced),) if self._replaced else ()
        return Verdict(
            kind,
            at_least,
            bound.offsets,
            committed,
            without(bound.spans, committed),
            count(spans) - count(touched),
            max((pair.expired for pair in pairs.values()), default=0),
            since,
            (*marks, *self._reached(broker, since), *self._lost, *replaced, *bound.evidence, *self._alone),
            conditions,
            self._checked_by(conditions) if none else self._decided_by(),
        )

    def _still_growing(self, broker: int, bound: _Bound) -> _Bound:
        """Without a limit while another log may take more acknowledged records, after the election too."""
        growing = tuple(other for other in self.growing if other != broker)
        if not growing:
            return bound
        writing = Evidence(EvidenceKind.STILL_WRITING, growing)
        if may_acknowledge(self.facts.survey, growing):
            return bound._replace(offsets=None, evidence=(writing,), conditions=())
        # It may have heard of a lower min ISR, and not of the present one.
        never_lower = Condition(ConditionKind.MIN_ISR_NEVER_LOWER)
        conditions = tuple(dict.fromkeys((*bound.conditions, never_lower)))
        return bound._replace(evidence=(*bound.evidence, writing), conditions=conditions)

    def steady(self) -> tuple[int, ...]:
        """As :attr:`PartitionVerdicts.steady`; empty where the topic is not compacted or there is no history."""
        history = self.history
        if history is None or self.facts.compacted is False:
            return ()
        return tuple(sorted(self.logs, key=history.in_sync_from))

    def _emptied(self, broker: int) -> Condition | None:
        """The condition that the disk was not replaced: the log is empty, and the partition had leaders before."""
        return (
            Condition(ConditionKind.NOT_EMPTIED, (broker,), doubtful=True)
            if self._is_emptied(broker)
            else None
        )

    def _is_emptied(self, broker: int) -> bool:
        return self.logs[broker].log_end_offset <= 0 < self.facts.survey.state.leader_epoch

    def _reached(self, broker: int, since: int | None) -> tuple[Evidence, ...]:
        if since is None:
            return ()
        return (Evidence(EvidenceKind.MIN_ISR_WITHOUT, (broker,), since_ms=since),)

    def _bound(
        self, broker: int, pairs: Mapping[int, LackingSpans], spans: tuple[EpochSpan, ...], at_least: int
    ) -> _Bound:
        """The lowest bound, with the fewest conditions.

        If a high watermark proves that more is lost than a bound allows, a condition of that bound does not hold.
        """
        found = []
        # What was on a disk that was replaced did not answer.
        if not self.silent and not self._replaced:
            everything = loss(self.facts.survey, broker)
            at_most = None if everything.at_most is None else everything.at_most - count(everything.head)
            evidence = Evidence(EvidenceKind.EVERY_REPLICA_ANSWERED, tuple(self.logs))
            found.append(_Bound(at_most, spans, (evidence,), ()))
        found += [
            bound
            for proof in self.proofs
            if not self._refuted(proof)
            if (bound := self._bound_by(proof, broker, pairs)).offsets is None or bound.offsets >= at_least
        ]
        return min(found, key=_preference, default=_Bound(None, spans, (), ()))

    def _refuted(self, proof: CompleteLog) -> bool:
        """Whether more of its witnesses than it tolerates have a log that is empty while others are not."""
        return any(
            sum(other in self.logs and emptied(self.logs, other) for other in condition.brokers)
            > condition.tolerated
            for condition in proof.conditions
            if condition.kind is ConditionKind.RECORDS_KEPT
        )

    def _bound_by(self, proof: CompleteLog, broker: int, pairs: Mapping[int, LackingSpans]) -> _Bound:
        ranks = proof.ranks and key(self.logs[broker]) >= key(self.logs[proof.broker])
        if broker == proof.broker or ranks:
            bound = _Bound(0, (), proof.evidence, proof.conditions)
        else:
            pair = pairs[proof.broker]
            bound = _Bound(pair.at_most, pair.spans, proof.evidence, proof.conditions)
        for branch in proof.earlier:
            bound = _with_branch(bound, branch, pairs)
        return bound

    def _decided_by(self) -> tuple[Decider, ...]:
        survey = self.facts.survey
        found = [Decider(DeciderKind.END_OF_WRITES, self.growing, every=True)] if self.growing else []
        unread = tuple(broker for broker in self.silent if survey.log(broker) is not None)
        mute = tuple(broker for broker in self.silent if broker not in unread)
        if unread:
            found.append(Decider(DeciderKind.LINEAGE, unread, every=True))
        if mute:
            brokers, every = self._needed(mute)
            if whole := tuple(broker for broker in brokers if broker not in self.facts.failed_disks):
                found.append(Decider(DeciderKind.BROKER_ANSWER, whole, every))
            found.append(Decider(DeciderKind.BROKER_DISK, brokers, every))
        if self._replaced:
            found.append(Decider(DeciderKind.BROKER_DISK, self._replaced, every=True))
        if isinstance(survey.min_isr, Unknown):
            found.append(Decider(DeciderKind.MIN_ISR))
        if self.history is None:
            found.append(Decider(DeciderKind.METADATA_LOG))
        return tuple(found)

    def _checked_by(self, conditions: tuple[Condition, ...]) -> tuple[Decider, ...]:
        """What would check the conditions of a verdict. Where every replica answered none of them is needed, except
        the one about a compacted log: another log says nothing of it.
        """
        if any(one.kind is not ConditionKind.NO_COMPACTION_HOLES for one in conditions):
            return self._decided_by()
        return (Decider(DeciderKind.METADATA_LOG),) if conditions and self.history is None else ()

    def _needed(self, mute: tuple[int, ...]) -> tuple[tuple[int, ...], bool]:
        """Which silent brokers would decide the verdict, and whether all of them are needed."""
        if self.history is None or self.proofs or any(e.unclean for e in self.history.doubts):
            return mute, True
        complete = tuple(broker for broker in mute if self.history.whole(broker) is not None)
        return (complete, False) if complete else (mute, True)


def _led_alone(history: InSyncHistory, known: Collection[int]) -> tuple[Evidence, ...]:
    """When leaders wrote that no broker whose log is known followed."""
    return tuple(
        Evidence(
            EvidenceKind.LED_ALONE,
            one.isr,
            since_ms=one.since_ms,
            until_ms=one.until_ms,
            acks_all=one.acks_all,
        )
        for one in history.led_alone(known)
    )


def _with_branch(bound: _Bound, branch: EarlierBranch, pairs: Mapping[int, LackingSpans]) -> _Bound:
    """``bound`` with what may be left of a branch of before an election in doubt."""
    visible: tuple[EpochSpan, ...] = ()
    nameless: int | None = 0
    for pair in pairs.values():
        visible = joined(visible, tuple(span for span in pair.spans if span.epoch < branch.epoch))
        unsure = None if pair.at_most is None else pair.at_most - count(pair.spans)
        nameless = None if nameless is None or unsure is None else nameless + unsure
    if not branch.silent and not visible and nameless == 0:
        return bound
    if branch.condition is not None:
        if branch.condition in bound.conditions:
            return bound
        return bound._replace(conditions=(*bound.conditions, branch.condition))
    spans = joined(bound.spans, visible)
    more = count(spans) - count(bound.spans)
    known = bound.offsets is not None and nameless is not None and not branch.silent
    offsets = (bound.offsets or 0) + more + (nameless or 0) if known else None
    return _Bound(offsets, spans, (*bound.evidence, branch.evidence), bound.conditions)


def _preference(bound: _Bound) -> tuple[bool, int, int, int]:
    doubtful = sum(condition.doubtful for condition in bound.conditions)
    return bound.offsets is None, bound.offsets or 0, doubtful, len(bound.conditions)


def _all(pairs: Mapping[int, LackingSpans], *, committed: bool) -> tuple[EpochSpan, ...]:
    found: tuple[EpochSpan, ...] = ()
    for pair in pairs.values():
        found = joined(found, pair.committed if committed else pair.spans)
    return found
