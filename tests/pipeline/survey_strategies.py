"""Any survey that can be, and snapshots of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from random import Random

from pipeline.snapshot.observation import Observation
from pipeline.snapshot.snapshot_writer import SnapshotWriter, new_name
from pipeline.snapshot.survey_rows import batch_of
from pipeline.storage import StoragePath
from recovery.model import (
    EpochSpan,
    Lineage,
    PartitionState,
    Replica,
    ReplicaLog,
    Standing,
    Survey,
    Unknown,
    Why,
)

NOON = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def survey(random: Random, number: int) -> Survey:
    """Logs of a few epochs and offsets, so that they meet in every way; mostly offline, mostly electable."""
    brokers = tuple(random.sample(range(1, 7), random.choice((1, 2, 3, 3, 3, 4))))
    alike = _log(random) if random.random() < 0.4 else None
    replicas = tuple(_replica(random, broker, alike) for broker in brokers)

    def some(chance: float) -> tuple[int, ...]:
        return tuple(broker for broker in brokers if random.random() < chance)

    elr = None if random.random() < 0.2 else some(0.12)
    state = PartitionState(
        f"topic-{number % 7}",
        number // 7,
        "id",
        random.choice((-1, -1, -1, -1, -1, brokers[0])),
        random.randrange(6),
        brokers,
        some(0.12),
        elr,
        None if elr is None else some(0.3),
        tuple(r.broker for r in replicas if r.standing is not Standing.ELECTABLE),
    )
    unknown = Unknown(Why.NOT_ALLOWED, random.choice(("", "needs DESCRIBE on the cluster")))
    reassigning = random.choices((False, True, unknown), (20, 1, 1))[0]
    min_isr = random.choice((1, 2, Unknown(Why.FAILED, "it's odd")))
    return Survey(state, replicas, min_isr, reassigning)


def _replica(random: Random, broker: int, alike: ReplicaLog | None) -> Replica:
    asked = [one for one in Standing if one is not Standing.NOT_ASKED]  # a snapshot is of a cluster that runs
    standing = random.choices(asked, (7, 1, 1, 1))[0]
    if random.random() < 0.15:
        return Replica(broker, standing, Unknown(Why.NOT_ANSWERED, "refused"))
    log = (alike or _log(random))._replace(leads=True if random.random() < 0.05 else None)
    if random.random() < 0.06:
        why = random.choice((Why.NOT_ALLOWED, Why.NOT_ANSWERED, Why.FAILED))
        log = log._replace(lineage=Unknown(why, "needs READ on topic 'it's'"))
    return Replica(broker, standing, log)


def _log(random: Random) -> ReplicaLog:
    start = random.choice((0, 0, 0, random.randrange(8)))
    floor = start + random.choice((0, 0, 0, random.randrange(4)))
    spans, at = [], floor
    for epoch in sorted(random.sample(range(6), random.choice((0, 1, 1, 2, 3)))):
        end = at + random.randrange(1, 6)
        spans.append(EpochSpan(epoch, at, end))
        at = end
    last = spans[-1].epoch if spans else random.choice((-1, 0, 3))
    return ReplicaLog(
        random.randrange(6), at, start, random.randrange(at + 1), Lineage(last, tuple(spans), floor)
    )


def surveys(seed: int, count: int) -> list[Survey]:
    """The same for the same seed."""
    random = Random(seed)
    return [survey(random, number) for number in range(count)]


def write(
    root: StoragePath, cluster_id: str, surveys: Sequence[Survey], at: datetime = NOON, mark: str = "t"
) -> Observation:
    """A full snapshot of those partitions."""
    with SnapshotWriter(root, new_name(cluster_id, at, mark)) as writer:
        writer.partitions(batch_of(surveys, {}))
        return writer.commit(at, "0.1.0")
