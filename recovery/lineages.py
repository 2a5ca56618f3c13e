"""What the epochs of one replica's log tell about another's.

A broker that is killed between DeleteRecords and its next log start checkpoint has the deleted records again, and
not their epochs (:mod:`recovery.epoch_probe`). Logs that hold a record of the same epoch are equal before it: where
one has lost its epochs, the other's count for both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from recovery.model import EpochSpan, Lineage, ReplicaLog, Survey, Unknown


class KnownLog(NamedTuple):
    """A log's start, and its lineage as far as its own broker reported it."""

    start: int
    lineage: Lineage


def reconciled(logs: Mapping[int, KnownLog]) -> dict[int, Lineage]:
    """The lineages of a partition's logs, by broker, each with what the others tell about it."""
    found = {broker: lineage for broker, (_, lineage) in logs.items()}
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
