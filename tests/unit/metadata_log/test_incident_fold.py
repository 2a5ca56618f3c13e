"""Incidents out of a log that is read in parts: as in one piece, whatever is lost or repeated in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.metadata_log.directory import DirectoryReading, read_directory
from pipeline.watch.fold_state import dump_state, load_state
from recovery.controller.registration import PartitionChange, Registration
from recovery.metadata_log.history import fold
from recovery.metadata_log.incident_fold import (
    ClusterMoment,
    EndedIncident,
    FoldState,
    IncidentFold,
    IncidentMoment,
)
from recovery.metadata_log.log_changes import IN_SNAPSHOT, MetadataLogRecord, PartitionSubject
from recovery.metadata_log.outages import outages
from recovery.metadata_log.partition_states import EventKind
from recovery.metadata_log.record_codec import encode
from recovery.metadata_log.records import (
    ClearElrRecord,
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    RecordType,
    RemoveTopicRecord,
    ResourceType,
    TransactionRecord,
)
from recovery.metadata_log.timeline import events
from tests.shipped_metadata_logs import (
    BEGAN_MS,
    CLEAN_ELECTION,
    LOSES_LEADER,
    TOPIC_IDS,
    UNCLEAN_ELECTION,
    LogWriter,
    append_incidents,
    change,
    fenced,
    topics,
)

INCIDENT = Path(__file__).with_name("stale_long_tail")
Part = list[MetadataLogRecord]


def batches_of(log: LogWriter) -> list[Part]:
    return [
        [
            MetadataLogRecord(first + at, BEGAN_MS + first * 1000, first, encode(record))
            for at, record in enumerate(records)
        ]
        for first, records in log.written
    ]


def in_snapshot(records: list[MetadataRecord]) -> Part:
    return [MetadataLogRecord(at, BEGAN_MS, IN_SNAPSHOT, encode(record)) for at, record in enumerate(records)]


def in_parts(parts: list[Part]) -> tuple[list[IncidentMoment | ClusterMoment], list[EndedIncident]]:
    """Each part by a fold of its own, from the bytes of the state before."""
    moments: list[IncidentMoment | ClusterMoment] = []
    ended: list[EndedIncident] = []
    state = dump_state(FoldState())
    for part in parts:
        one = IncidentFold(load_state(state))
        one.extend(part)
        moments += one.moments
        ended += one.ended
        state = dump_state(one.state)
    return moments, ended


@pytest.fixture
def log(tmp_path: Path) -> LogWriter:
    written = LogWriter(tmp_path / "log")
    written.append(*topics())
    return written


def test_a_real_incident_has_the_times_of_the_log() -> None:
    records = list(read_directory(DirectoryReading(INCIDENT)))
    one = IncidentFold(FoldState())
    one.extend(records)
    (ended,) = one.ended
    first, last = outages(events(fold(records)))
    assert ended.outage == first
    assert ended.exact and first.unclean and first.until_ms is not None
    (open_,) = one.state.incidents.values()
    assert open_.outage == last
    states = [
        (moment.move.kind, moment.move.after.isr, moment.move.after.elr, moment.min_isr)
        for moment in one.moments
        if isinstance(moment, IncidentMoment) and moment.move.after is not None
    ]
    assert states == [
        (EventKind.OFFLINE, (), (1, 3), 2),
        (EventKind.UNCLEAN_ELECTION, (2,), (), 2),
        (EventKind.OFFLINE, (), (3,), 2),
    ]


@pytest.mark.parametrize("seed", range(5))
def test_a_log_in_parts_has_the_same_incidents_as_in_one_piece(log: LogWriter, seed: int) -> None:
    append_incidents(log, seed, 40)
    batches = batches_of(log)
    whole = in_parts([[record for batch in batches for record in batch]])
    assert whole[1]
    assert in_parts(batches) == whole


def test_what_explains_an_outage_is_in_its_moment(log: LogWriter) -> None:
    log.append(change(LOSES_LEADER), fenced(1))
    moments, _ = in_parts(batches_of(log))
    assert isinstance(moments[-2], IncidentMoment) and moments[-2].cause is not None
    assert isinstance(moments[-1], ClusterMoment) and moments[-1].kind is EventKind.BROKER_FENCED


def test_a_change_of_min_isr_is_a_moment_and_counts_from_then_on(log: LogWriter) -> None:
    log.append(change(LOSES_LEADER))
    log.append(ConfigRecord(ResourceType.TOPIC, "t0", "min.insync.replicas", "1"))
    log.append(ConfigRecord(ResourceType.TOPIC, "t0", "retention.ms", "1"))
    log.append(change(CLEAN_ELECTION))
    moments, _ = in_parts(batches_of(log))
    assert [moment.min_isr for moment in moments if isinstance(moment, IncidentMoment)] == [2, 1]
    assert [m.row.offset for m in moments if isinstance(m, ClusterMoment)] == [6, 8]


def test_a_deleted_topic_ends_its_incidents(log: LogWriter) -> None:
    log.append(change(LOSES_LEADER), change(LOSES_LEADER, 1))
    log.append(ClearElrRecord(""))
    at = log.append(RemoveTopicRecord(TOPIC_IDS[0]))
    one = IncidentFold(FoldState())
    one.extend(record for batch in batches_of(log) for record in batch)
    (ended,) = one.ended
    assert ended.outage.deleted and ended.outage.until_ms == BEGAN_MS + at * 1000
    assert list(one.state.topics) == [TOPIC_IDS[1]]
    assert {subject.topic_id for subject in one.state.partitions} == {TOPIC_IDS[1]}


def test_a_transaction_over_two_parts_counts_when_it_ends(log: LogWriter) -> None:
    log.append(TransactionRecord(RecordType.BEGIN_TRANSACTION))
    log.append(change(LOSES_LEADER))
    before, _ = in_parts(batches_of(log))
    assert not any(isinstance(moment, IncidentMoment) for moment in before)
    log.append(TransactionRecord(RecordType.END_TRANSACTION))
    after, _ = in_parts(batches_of(log))
    assert sum(isinstance(moment, IncidentMoment) for moment in after) == 1


def test_an_unclean_election_without_a_time_offline_is_an_incident(log: LogWriter) -> None:
    log.append(change(PartitionChange(isr=(1,))))
    log.append(change(UNCLEAN_ELECTION))
    log.append(change(PartitionChange(leader=2, isr=(2,))))
    _, ended = in_parts(batches_of(log))
    assert [(one.outage.since_ms, one.outage.until_ms, one.outage.unclean) for one in ended] == [
        (BEGAN_MS + 8000, BEGAN_MS + 8000, True),
        (BEGAN_MS + 9000, BEGAN_MS + 9000, True),
    ]


# Snapshots and gaps

OFFLINE = Registration((1, 2, 3), (), -1, 5, 5, elr=(1, 2))


def with_offline(registration: Registration) -> Part:
    """A snapshot with t0-0 in that state."""
    records = topics()
    records[1] = PartitionRecord(TOPIC_IDS[0], 0, registration)
    return in_snapshot(records)


def test_what_a_snapshot_shows_offline_began_before_it() -> None:
    one = IncidentFold(FoldState())
    one.restart(with_offline(OFFLINE), 100)
    (moment,) = one.moments
    assert isinstance(moment, IncidentMoment)
    assert (moment.row.batch, moment.move.after, moment.min_isr) == (IN_SNAPSHOT, OFFLINE, 2)
    assert (one.ended, one.gaps) == ([], [])
    one.extend([MetadataLogRecord(100, BEGAN_MS + 9, 100, encode(change(CLEAN_ELECTION)))])
    (ended,) = one.ended
    assert not ended.exact
    assert (ended.outage.since_ms, ended.outage.until_ms) == (BEGAN_MS, BEGAN_MS + 9)


def fold_with_outage(log: LogWriter) -> IncidentFold:
    """t0-0 is offline in leader epoch 1, from offset 7 on."""
    log.append(change(LOSES_LEADER))
    one = IncidentFold(FoldState())
    one.extend(record for batch in batches_of(log) for record in batch)
    return IncidentFold(load_state(dump_state(one.state)))


def test_an_incident_over_a_gap_goes_on_if_the_leader_epoch_is_the_same(log: LogWriter) -> None:
    one = fold_with_outage(log)
    one.restart(with_offline(OFFLINE._replace(leader_epoch=1)), 100)
    assert one.ended == []
    (gap,) = one.gaps
    assert (gap.reported_until, gap.goes_on) == (8, 100)
    (open_,) = one.state.incidents.values()
    assert open_.exact and open_.outage.since_ms == BEGAN_MS + 7000


@pytest.mark.parametrize("registration", [OFFLINE, Registration((1, 2, 3), (1,), 1, 2, 9)])
def test_an_incident_over_a_gap_ends_at_an_unknown_time_if_the_epoch_is_another(
    log: LogWriter, registration: Registration
) -> None:
    one = fold_with_outage(log)
    one.restart(with_offline(registration), 100)
    (ended,) = one.ended
    assert ended.outage.until_ms is None
    now_offline = [open_.exact for open_ in one.state.incidents.values()]
    assert now_offline == ([] if registration.has_leader else [False])


def test_records_that_the_snapshot_includes_do_not_count_again(log: LogWriter) -> None:
    one = fold_with_outage(log)
    one.restart(with_offline(Registration((1, 2, 3), (1,), 1, 2, 9)), 100)
    one.extend([MetadataLogRecord(99, BEGAN_MS, 99, encode(change(LOSES_LEADER)))])
    assert one.state.partitions[PartitionSubject(TOPIC_IDS[0], 0)].registration.leader == 1


def test_a_log_that_is_read_again_from_its_beginning_reports_nothing_twice(log: LogWriter) -> None:
    append_incidents(log, 3, 30)
    batches = batches_of(log)
    whole = in_parts(batches)
    one = IncidentFold(FoldState())
    for batch in batches[:20]:
        one.extend(batch)
    one.restart([], 0)
    for batch in batches:
        one.extend(batch)
    assert (one.moments, one.ended) == whole
    assert len(one.gaps) == 1
