"""What the epochs of one replica's log tell about another's.

A leader epoch has one leader, and begins at one offset in every log that holds its first record. So of two logs
that say otherwise the one with the later start has lost the epochs below it, and what it answered for them was
invented: a broker that is killed between DeleteRecords and its next log start checkpoint has the deleted records
again, and not their epochs (:mod:`recovery.epoch_probe`). And logs that hold a record of the same epoch are equal
before it: where one has lost its epochs, the other's count for both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from recovery.model import EpochSpan, Lineage, ReplicaLog, Survey, Unknown


class KnownLog(NamedTuple):
    """A log's start, and its lineage as far as its own broker told it."""

    start: int
    lineage: Lineage


def reconciled(logs: Mapping[int, KnownLog]) -> dict[int, Lineage]:
    """The lineages of a partition's logs, by broker, each with what the others tell about it."""
    starts: dict[int, int] = {}
    for _, lineage in logs.values():
        for epoch, start, _ in lineage.spans:
            starts[epoch] = min(start, starts.get(epoch, start))
    found = {broker: _without_invented(lineage, starts) for broker, (_, lineage) in logs.items()}
    learned = True
    while learned:  # what one log learns from a second, a third may learn from it
        before = dict(found)
        for broker, lineage in before.items():
            found[broker] = _completed(logs[broker].start, lineage, found.values())
        learned = found != before
    return found


def reconciled_survey(survey: Survey) -> Survey:
    """The survey with its lineages reconciled, as after the log of another replica became known."""
    known: dict[int, KnownLog] = {}
    for replica in survey.replicas:
        log = replica.log
        if isinstance(log, ReplicaLog) and not isinstance(log.lineage, Unknown):
            known[replica.broker] = KnownLog(log.log_start_offset, log.lineage)
    found = reconciled(known)
    replicas = tuple(
        replica._replace(log=replica.log._replace(lineage=found[replica.broker]))
        if isinstance(replica.log, ReplicaLog) and replica.broker in found
        else replica
        for replica in survey.replicas
    )
    return survey._replace(replicas=replicas)


def _without_invented(lineage: Lineage, starts: Mapping[int, int]) -> Lineage:
    """Without the spans below an epoch that begins earlier in another log."""
    for place in range(len(lineage.spans) - 1, 0, -1):
        epoch, start, _ = lineage.spans[place]
        if starts[epoch] < start:
            return lineage._replace(spans=lineage.spans[place:], floor=start)
    return lineage


def _completed(start: int, lineage: Lineage, others: Iterable[Lineage]) -> Lineage:
    """With the spans below its floor that another log shows: both hold records of the epoch at the floor."""
    if not lineage.spans or lineage.floor <= start:
        return lineage
    epoch, floor, end = lineage.spans[0]
    for other in others:
        began = next((span.start for span in other.spans if span.epoch == epoch), None)
        if began is not None and began <= floor and other.floor < floor:
            below = [span for span in other.spans if span.epoch < epoch and span.end > start]
            older = [span._replace(start=max(span.start, start)) for span in below]
            first = EpochSpan(epoch, max(began, start), end)
            return lineage._replace(spans=(*older, first, *lineage.spans[1:]), floor=max(other.floor, start))
    return lineage
