"""Which logs that were read from a disk count as a silent replica's answer, and which are stale."""

from __future__ import annotations

import pytest

from recovery.disk_evidence import DiskLog, DiskReading, RegistrationFacts, with_disks
from recovery.loss import loss
from recovery.model import (
    EpochSpan,
    Lineage,
    PartitionState,
    Replica,
    ReplicaLog,
    Standing,
    Survey,
    TopicPartition,
    Unknown,
    Why,
)

TOPIC_ID, DIRECTORY = "0hT1bLwVQbmRr2dqAjHb1w", "pKx3rWm0RqGqkqg2bC0Q3A"
LOG = ReplicaLog(3, 1300, 0, -1, Lineage(2, (EpochSpan(0, 0, 1000), EpochSpan(2, 1000, 1300)), 0))
SILENT = Unknown(Why.NOT_ANSWERED, "connection refused")
TP = TopicPartition("orders", 0)


def survey(standing: Standing = Standing.FENCED, leader: int = -1, isr: tuple[int, ...] = ()) -> Survey:
    state = PartitionState("orders", 0, TOPIC_ID, leader, 4, (1, 2, 3), isr, (), (), (3,))
    others = (Replica(1, Standing.ELECTABLE, LOG), Replica(2, Standing.ELECTABLE, LOG))
    return Survey(state, (*others, Replica(3, standing, SILENT)), 2)


def reading(log: ReplicaLog = LOG, metadata_end: int | None = 900, lost: str | None = None) -> DiskReading:
    disk = DiskLog(TOPIC_ID, DIRECTORY, log, lost)
    return DiskReading("broker-3.json", 3, "cluster", "host-3", 5_000, metadata_end, {TP: disk})


def facts(offset: int = 100, time_ms: int | None = 1_000, directory: str = DIRECTORY) -> RegistrationFacts:
    return RegistrationFacts((offset, time_ms), {(TOPIC_ID, 0): directory})


def refused(seen: Survey, disk: DiskReading, registration: RegistrationFacts | None = None) -> str | None:
    known = {} if registration is None else {3: registration}
    (found,), refusals = with_disks([seen], [disk], known)
    assert (found.replica(3) == seen.replica(3)) is bool(refusals)
    return refusals[0].reason if refusals else None


@pytest.mark.parametrize("registration", [None, facts(), facts(time_ms=None), RegistrationFacts(None, {})])
def test_the_log_of_a_silent_replica_counts_and_cannot_be_elected(
    registration: RegistrationFacts | None,
) -> None:
    known = {} if registration is None else {3: registration}
    (found,), refusals = with_disks([survey()], [reading()], known)
    replica = found.replica(3)
    assert replica is not None
    assert (replica.log, replica.disk_read_ms, replica.electable) == (LOG, 5_000, False)
    assert refusals == ()


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (survey(Standing.ELECTABLE), "registered and not fenced"),
        (survey(leader=3), "registered and not fenced"),
        (survey(isr=(3,))._replace(), None),
        (
            survey(isr=(3,))._replace(state=survey(isr=(3,)).state._replace(leader_epoch=5)),
            "ran after it was read",
        ),
        (survey(leader=1)._replace(state=survey(leader=1).state._replace(leader_epoch=9)), None),
        (survey()._replace(state=survey().state._replace(leader_epoch=2)), "another history"),
    ],
)
def test_what_the_partitions_state_says_of_the_disk(seen: Survey, said: str | None) -> None:
    reason = refused(seen, reading())
    assert reason == said if said is None else said in (reason or "")


@pytest.mark.parametrize(
    ("registration", "metadata_end", "said"),
    [
        (facts(offset=899), 900, None),
        (facts(offset=900), 900, "registered again"),
        (facts(offset=10, time_ms=9_000), 900, None),
        (facts(time_ms=4_999), None, None),
        (facts(time_ms=5_001), None, "registered again"),
        (facts(time_ms=None), None, "scan its metadata log too"),
        (facts(directory="AdkVzT9lTSqzMpvUYqDbmA"), 900, "another directory id"),
    ],
)
def test_what_the_metadata_log_says_of_the_disk(
    registration: RegistrationFacts, metadata_end: int | None, said: str | None
) -> None:
    reason = refused(survey(), reading(metadata_end=metadata_end), registration)
    assert reason == said if said is None else said in (reason or "")


def test_a_disk_tells_the_epochs_that_brokers_have_forgotten() -> None:
    """Killed after DeleteRecords at 143, 1 has its records again and remembers no epoch of them."""
    returned = Lineage(1, (EpochSpan(1, 143, 188),), 143)
    deleted = Lineage(1, (EpochSpan(1, 143, 188),), 143)
    whole = Lineage(1, (EpochSpan(0, 0, 35), EpochSpan(1, 35, 188)), 0)
    seen = survey()
    one, two, three = seen.replicas
    told = (
        one._replace(log=ReplicaLog(4, 188, 0, 0, returned)),
        two._replace(log=ReplicaLog(4, 188, 143, 0, deleted)),
        three,
    )
    disk = reading(ReplicaLog(3, 188, 0, -1, whole))
    (found,), _ = with_disks([seen._replace(replicas=told)], [disk], {})
    log = found.log(1)
    assert log is not None and log.lineage == whole
    lost = loss(found, 2)
    assert lost.at_least == lost.at_most == 143


def test_a_log_that_lost_records_is_no_answer() -> None:
    assert "records are missing at the end" in (refused(survey(), reading(lost="zeros")) or "")


def test_a_replica_that_is_not_of_the_partition_changes_nothing() -> None:
    seen = survey()
    found, refusals = with_disks([seen], [reading()._replace(broker=7)], {})
    assert (found, refusals) == ((seen,), ())
