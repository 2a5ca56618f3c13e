"""The metadata log of a real incident (:mod:`.incident_log`): its records, states and events."""

from __future__ import annotations

import random

import pytest

from recovery.controller.registration import LeaderRecoveryState, PartitionChange, Registration
from recovery.metadata_log.field_reader import MalformedRecordError
from recovery.metadata_log.history import MetadataHistory, fold
from recovery.metadata_log.log_changes import DecodedRecord, MetadataLogRecord, PartitionSubject
from recovery.metadata_log.partition_states import EventKind
from recovery.metadata_log.record_codec import decode, encode
from recovery.metadata_log.records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RecordType,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    Skipped,
    TransactionRecord,
    UnregisterBrokerRecord,
)
from recovery.metadata_log.timeline import ClusterEvent, PartitionMove, events
from recovery.metadata_log.timeline_text import event_text
from recovery.model import TopicPartition
from tests.repetitions import repetitions
from tests.unit.metadata_log.dump import every_record, only_idle_left_out, read_dump
from tests.unit.metadata_log.incident_log import INCIDENT, find, read


@pytest.fixture(scope="module")
def records() -> list[MetadataLogRecord]:
    return read(INCIDENT)[0]


@pytest.fixture(scope="module")
def history(records: list[MetadataLogRecord]) -> MetadataHistory:
    return fold(records)


def test_every_record_is_what_kafkas_own_tool_prints(records: list[MetadataLogRecord]) -> None:
    dumped = read_dump((INCIDENT / "dump.txt").read_text())
    assert every_record((INCIDENT / "00000000000000000000.log").read_bytes()) == dumped
    assert len(records) < len(dumped)
    assert only_idle_left_out(dumped, records)


def test_what_is_written_is_what_kafka_wrote(records: list[MetadataLogRecord]) -> None:
    """Byte for byte behind the record's version, but for records of which something is not read: a broker's
    features, the name of a transaction.
    """
    exact = 0
    for record in records:
        decoded = decode(record.value)
        if isinstance(decoded, Skipped):
            continue
        written = encode(decoded)
        assert decode(written) == decoded
        if not isinstance(decoded, (RegisterBrokerRecord, RegisterControllerRecord, TransactionRecord)):
            assert (written[1], written[3:]) == (record.value[1], record.value[3:])
            exact += 1
    assert exact > 30


def test_a_partitions_states_say_who_was_in_sync_and_who_led_when(history: MetadataHistory) -> None:
    (orders,) = history.partitions()
    states = [
        (i.registration.leader, i.registration.isr, i.registration.elr) for i in history.intervals(orders)
    ]
    assert states == [
        (1, (1, 2, 3), ()),
        (1, (1, 3), ()),
        (1, (1,), (3,)),
        (-1, (), (1, 3)),
        (2, (2,), ()),
        (2, (2, 3), ()),
        (3, (3,), (2,)),
        (3, (3,), ()),
        (-1, (), (3,)),
    ]
    unclean = history.intervals(orders)[4]
    assert unclean.registration.leader_recovery_state is LeaderRecoveryState.RECOVERING
    assert unclean.registration.leader_epoch == 2
    last = history.intervals(orders)[-1]
    assert last.until_ms is None
    assert last.registration.leader_epoch == 4


def test_the_timeline_names_the_broker_that_took_a_partition_offline(history: MetadataHistory) -> None:
    first, last = find(history, EventKind.OFFLINE)
    assert [move.tp for move in first.moves] == [TopicPartition("orders", 0)]
    assert event_text(first, history).endswith("(broker 1 fenced)")
    assert event_text(last, history).endswith("(broker 3 fenced)")


def test_the_timeline_tells_an_unclean_election_from_a_clean_one(history: MetadataHistory) -> None:
    (unclean,) = find(history, EventKind.UNCLEAN_ELECTION)
    (clean,) = find(history, EventKind.LEADER_CHANGED)
    assert (unclean.moves[0].after and unclean.moves[0].after.leader) == 2
    assert (clean.moves[0].after and clean.moves[0].after.leader) == 3


def test_a_broker_that_registers_after_a_crash_is_why_the_elr_lost_it(history: MetadataHistory) -> None:
    (event,) = find(history, EventKind.ELR_CHANGED)
    assert "broker 2 registered again after an unclean shutdown" in event_text(event, history)


def test_every_event_has_one_line(history: MetadataHistory) -> None:
    texts = [event_text(event, history) for event in events(history)]
    assert all(text and "\n" not in text for text in texts)
    assert "broker 3 fenced" in texts
    assert "min.insync.replicas set to 2 for topic orders" in texts


def test_a_fence_is_told_without_the_whole_history_of_its_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a broker that was fenced thousands of times takes that squared."""
    fences = [BrokerRegistrationChangeRecord(2, 1, fenced=at % 2 == 0) for at in range(4)]
    history = MetadataHistory()
    history.extend_decoded(DecodedRecord(at, at, at, record) for at, record in enumerate(fences))
    found = list(events(history))
    monkeypatch.delattr(MetadataHistory, "of")
    assert [event_text(event, history) for event in found] == ["broker 2 fenced", "broker 2 unfenced"] * 2


def test_a_log_dir_that_is_no_longer_online_has_failed() -> None:
    def at(offset: int, record: RegisterBrokerRecord | BrokerRegistrationChangeRecord) -> DecodedRecord:
        return DecodedRecord(offset, offset, offset, record)

    def dirs(offset: int, *online: str) -> DecodedRecord:
        return at(offset, BrokerRegistrationChangeRecord(2, 1, directories=online))

    registered = RegisterBrokerRecord(2, 1, "i", (), None, True, False, ("a", "b", "c"))
    history = MetadataHistory()
    history.extend_decoded([at(1, registered), dirs(2, "a", "b"), dirs(3, "a", "b", "c"), dirs(4, "b")])
    _, first, back, both = (event_text(event, history) for event in events(history))
    assert first == "broker 2: a log dir FAILED, 2 of 3 left"
    assert back == "broker 2: 3 log dirs online"
    assert both == "broker 2: 2 log dirs FAILED, 1 of 3 left"
    unknown = MetadataHistory()
    unknown.extend_decoded([dirs(2, "a")])
    assert [event_text(event, unknown) for event in events(unknown)] == ["broker 2: 1 log dir online"]


# Partitions of one topic that changed alike: what is concluded of one holds for the other.


def test_partitions_that_changed_alike_are_told_apart_by_what_happened_in_between() -> None:
    topic, wide, narrow = "A" * 22, Registration((1, 2), (1, 2), 1, 0), PartitionChange(isr=(1,))
    starts = encode(RegisterBrokerRecord(2, 5, "A" * 22, (), None, False, False, ()))

    def made(partition: int) -> bytes:
        return encode(PartitionRecord(topic, partition, wide))

    def left(partition: int) -> bytes:
        return encode(PartitionChangeRecord(topic, partition, narrow))

    def alike(*values: bytes) -> bool:
        records = [record._replace(time_ms=0) for record in log_of(*values)]
        history = fold(records)
        first, second = (history.likeness(PartitionSubject(topic, partition)) for partition in (0, 1))
        return first == second

    assert alike(made(0), made(1), left(0), left(1), starts)
    assert not alike(made(0), made(1), left(0), starts, left(1))
    assert not alike(made(0), made(1), left(0), left(1), left(1))
    assert not alike(made(0), starts, made(1))


# Transactions of the controller, and records that this code does not know.


def log_of(*values: bytes) -> list[MetadataLogRecord]:
    return [MetadataLogRecord(at, 1_000 + at, at, value) for at, value in enumerate(values)]


BEGIN, END, ABORT = (
    bytes((1, kind, 0, 0))
    for kind in (RecordType.BEGIN_TRANSACTION, RecordType.END_TRANSACTION, RecordType.ABORT_TRANSACTION)
)
FEATURE = bytes((1, RecordType.FEATURE_LEVEL, 0, 2)) + b"f" + bytes((0, 7, 0))


def test_an_aborted_transaction_never_was() -> None:
    history = fold(log_of(BEGIN, FEATURE, ABORT))
    assert (len(history), history.counts.aborted) == (0, 1)


def test_a_transaction_that_has_not_ended_is_counted_and_not_believed() -> None:
    history = fold(log_of(BEGIN, FEATURE))
    assert (len(history), history.counts.uncommitted) == (0, 1)


def test_a_transaction_that_ended_counts() -> None:
    history = fold(log_of(BEGIN, FEATURE, END))
    assert len(history) == 1


def test_a_type_and_a_version_of_a_later_release_are_skipped_and_counted() -> None:
    later_type, later_version = bytes((1, 99, 0, 1, 2, 3)), bytes((1, RecordType.PARTITION_CHANGE, 9, 1))
    assert decode(later_type) == Skipped(99, 0)
    history = fold(log_of(later_type, later_version, later_version, FEATURE))
    assert len(history) == 1
    assert history.counts.unknown == {(99, 0): 1, (5, 9): 2}
    assert "has type 99, which this version of ktriage does not know" in history.counts.unread


def test_an_unknown_version_of_a_type_that_touches_no_partition_leaves_nothing_unread() -> None:
    history = fold(log_of(bytes((1, RecordType.USER_SCRAM_CREDENTIAL, 9, 1)), FEATURE))
    assert (history.counts.unknown, history.counts.unread) == ({(11, 9): 1}, "")


def test_credentials_are_never_decoded() -> None:
    value = bytes((1, RecordType.USER_SCRAM_CREDENTIAL, 0)) + b"secret"
    record = decode(value)
    assert record == Skipped(RecordType.USER_SCRAM_CREDENTIAL, 0)
    assert isinstance(record, Skipped)
    assert record.known


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_value_is_refused_or_read_as_it_stands(records: list[MetadataLogRecord], seed: int) -> None:
    """Cut, flipped and lengthened values: one error type, no endless loop, nothing beyond the bytes."""
    rng = random.Random(seed)
    values = [r.value for r in records if len(r.value) > 4]
    for _ in range(repetitions(500, 2_500)):
        value = bytearray(rng.choice(values))
        match rng.randrange(3):
            case 0:
                del value[rng.randrange(len(value)) :]
            case 1:
                value[rng.randrange(len(value))] = rng.randrange(256)
            case _:
                value += rng.randbytes(rng.randint(1, 4))
        try:
            decode(bytes(value))
        except MalformedRecordError:
            continue


def test_a_damaged_record_hides_no_other() -> None:
    history = fold(log_of(FEATURE, FEATURE[:-2], b"", FEATURE))
    assert (len(history), history.counts.malformed) == (2, 2)


def test_a_change_whose_partition_was_never_seen_invents_no_state(records: list[MetadataLogRecord]) -> None:
    history = fold([r for r in records if r.offset > 31])
    (orders,) = history.partitions()
    assert history.intervals(orders) == ()


def test_a_partition_that_is_not_in_the_log_has_no_intervals(history: MetadataHistory) -> None:
    assert history.intervals(PartitionSubject("none", 0)) == ()


def test_partitions_that_go_offline_together_are_told_with_their_isr_and_elr() -> None:
    before = Registration((1, 2, 3), (1,), 1, elr=(2,))
    without = Registration((1, 2, 3), (), -1, elr=(1, 2), last_known_elr=(1,))
    names = [TopicPartition("orders", number) for number in range(2)]
    states = (without, without._replace(elr=(3,), last_known_elr=()))
    moves = tuple(
        PartitionMove(tp, EventKind.OFFLINE, before, after) for tp, after in zip(names, states, strict=True)
    )
    event = ClusterEvent(1_000, 7, EventKind.OFFLINE, None, moves, None)
    assert event_text(event, fold([])) == (
        "2 partitions OFFLINE: orders-0 now ISR (nobody), ELR (1, 2), last known leader 1;"
        " orders-1 now ISR (nobody), ELR (3)"
    )


def test_a_record_that_kafka_refuses_is_marked_with_its_offset() -> None:
    """Every node that replays it ends: it changes a registration that is not the broker's, or was ended."""
    registered = RegisterBrokerRecord(3, 19, "incarnation", (), None, True, False, ())
    changes: list[MetadataRecord] = [
        registered,
        BrokerRegistrationChangeRecord(3, 19, fenced=False),
        BrokerRegistrationChangeRecord(3, 12345, fenced=True),
        UnregisterBrokerRecord(3, 19),
        BrokerRegistrationChangeRecord(3, 19, fenced=True),
        registered._replace(broker_epoch=24),
        BrokerRegistrationChangeRecord(3, 24, fenced=False),
        BrokerRegistrationChangeRecord(4, 7, fenced=True),
    ]
    history = MetadataHistory()
    history.extend_decoded(DecodedRecord(19 + n, n, 19 + n, change) for n, change in enumerate(changes))
    found = list(events(history))
    assert [event.refused for event in found] == [
        "",
        "",
        "it names broker epoch 12345, and broker 3 is registered with 19",
        "",
        "broker 3 is not registered",
        "",
        "",
        "",
    ], "of broker 4 this log has no registration"
    assert ([row.offset for row in history.evidence.rows()], len(history)) == ([19, 20], 8)
    assert event_text(found[2], history) == (
        "broker 3 fenced: REFUSED by Kafka at offset 21, every node that replays it ends"
        " (it names broker epoch 12345, and broker 3 is registered with 19)"
    )
