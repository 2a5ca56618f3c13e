"""The verdict of every candidate of one partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from recovery.acknowledged.compaction_holes import compaction_condition
from recovery.acknowledged.complete_logs import CompleteLog, key, proofs_without_history
from recovery.acknowledged.lacking_spans import LackingSpans, joined, lacking
from recovery.acknowledged.partition_facts import PartitionFacts
from recovery.acknowledged.self_elections import self_elections
from recovery.acknowledged.verdict import (
    Condition,
    Decider,
    DeciderKind,
    Evidence,
    EvidenceKind,
    PartitionVerdicts,
    Verdict,
    VerdictKind,
)
from recovery.loss import count, loss, without
from recovery.model import EpochSpan, ReplicaLog, Survey, Unknown


def partition_verdicts(facts: PartitionFacts) -> PartitionVerdicts:
    """The verdict of each replica that answered with its log and epochs, and whom Kafka elects by itself."""
    judge = _Partition(facts)
    found: dict[int, Verdict] = {}
    for broker in judge.logs:
        if broker in facts.read_disks and facts.survey.log(broker) is None:
            continue  # a log read from a disk cannot be chosen
        found[broker] = judge.verdict(broker)
    return PartitionVerdicts(found, self_elections(facts, found))


class _Bound(NamedTuple):
    """At most ``offsets`` acknowledged offsets are lost, in ``spans``, if ``conditions`` hold. None: unknown."""

    offsets: int | None
    spans: tuple[EpochSpan, ...]
    evidence: tuple[Evidence, ...]
    conditions: tuple[Condition, ...]


class _Partition:
    """What all candidates of a partition share."""

    def __init__(self, facts: PartitionFacts) -> None:
        self.facts = facts
        self.logs = facts.known_logs()
        self.silent = tuple(r.broker for r in facts.survey.replicas if r.broker not in self.logs)
        self.proofs: Sequence[CompleteLog] = proofs_without_history(facts, self.logs)
        self._known = _with_logs(facts.survey, self.logs)

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
        bound = self._bound(broker, pairs, spans, at_least)
        marks = tuple(
            Evidence(EvidenceKind.HIGH_WATERMARK, (other,), self.logs[other].high_watermark)
            for other, pair in pairs.items()
            if pair.committed
        )
        none = bound.offsets == 0 and not at_least
        kind = VerdictKind.NONE if none else VerdictKind.SOME if at_least else VerdictKind.OPEN
        holes = compaction_condition(self.facts, self.logs, broker)
        touched = joined(committed, bound.spans)
        return Verdict(
            kind,
            at_least,
            bound.offsets,
            committed,
            without(bound.spans, committed),
            count(spans) - count(touched),
            max((pair.expired for pair in pairs.values()), default=0),
            None,
            (*marks, *bound.evidence),
            bound.conditions if holes is None else (*bound.conditions, holes),
            () if none else self._decided_by(),
        )

    def _bound(
        self, broker: int, pairs: Mapping[int, LackingSpans], spans: tuple[EpochSpan, ...], at_least: int
    ) -> _Bound:
        """The lowest bound, with the fewest conditions.

        High watermarks that prove more than a bound allows show that one of its conditions does not hold.
        """
        found = []
        if not self.silent:
            everything = loss(self._known, broker)
            at_most = None if everything.at_most is None else everything.at_most - count(everything.head)
            evidence = Evidence(EvidenceKind.EVERY_REPLICA_ANSWERED, tuple(self.logs))
            found.append(_Bound(at_most, spans, (evidence,), ()))
        found += [
            bound
            for proof in self.proofs
            if (bound := self._bound_by(proof, broker, pairs)).offsets is None or bound.offsets >= at_least
        ]
        return min(found, key=_preference, default=_Bound(None, spans, (), ()))

    def _bound_by(self, proof: CompleteLog, broker: int, pairs: Mapping[int, LackingSpans]) -> _Bound:
        ranks = proof.ranks and key(self.logs[broker]) >= key(self.logs[proof.broker])
        if broker == proof.broker or ranks:
            return _Bound(0, (), proof.evidence, proof.conditions)
        pair = pairs[proof.broker]
        return _Bound(pair.at_most, pair.spans, proof.evidence, proof.conditions)

    def _decided_by(self) -> tuple[Decider, ...]:
        survey = self.facts.survey
        found = []
        if self.silent:
            unread = tuple(broker for broker in self.silent if survey.log(broker) is not None)
            mute = tuple(broker for broker in self.silent if broker not in unread)
            if unread:
                found.append(Decider(DeciderKind.LINEAGE, unread, every=True))
            if mute:
                found.append(Decider(DeciderKind.BROKER_ANSWER, mute, every=True))
                found.append(Decider(DeciderKind.BROKER_DISK, mute, every=True))
        if isinstance(survey.min_isr, Unknown):
            found.append(Decider(DeciderKind.MIN_ISR))
        found.append(Decider(DeciderKind.METADATA_LOG))
        return tuple(found)


def _preference(bound: _Bound) -> tuple[bool, int, int, int]:
    doubtful = sum(condition.doubtful for condition in bound.conditions)
    return bound.offsets is None, bound.offsets or 0, doubtful, len(bound.conditions)


def _with_logs(survey: Survey, logs: Mapping[int, ReplicaLog]) -> Survey:
    """The survey with the logs that were read from disks."""
    replicas = tuple(
        replica._replace(log=logs[replica.broker]) if replica.broker in logs else replica
        for replica in survey.replicas
    )
    return survey._replace(replicas=replicas)


def _all(pairs: Mapping[int, LackingSpans], *, committed: bool) -> tuple[EpochSpan, ...]:
    found: tuple[EpochSpan, ...] = ()
    for pair in pairs.values():
        found = joined(found, pair.committed if committed else pair.spans)
    return found
