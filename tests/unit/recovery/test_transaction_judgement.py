"""What became of a transaction that is open in a partition's log, and on which evidence."""

from __future__ import annotations

import struct

import pytest

from recovery.metadata_log.field_reader import MalformedRecordError
from recovery.model import TopicPartition, Unknown, Why
from recovery.transactions.decision_records import decision_of, state_partition, transactional_id_of
from recovery.transactions.transaction_judgement import (
    EndingEvidence,
    TransactionEnding,
    TransactionJudgement,
    judge_transaction,
)
from recovery.transactions.transaction_values import (
    CoordinatedTransaction,
    EndedTransaction,
    OpenTransaction,
    RescuedMarker,
    TransactionState,
)

HERE, THERE = TopicPartition("payments", 0), TopicPartition("orders", 3)
OPEN = OpenTransaction(HERE, 4001, 5, 50, 1_700_000_000_000, -1)
NOT_READ = Unknown(Why.NOT_ALLOWED, "Fetch needs READ on Topic:__transaction_state")


def coordinated(
    state: TransactionState, *partitions: TopicPartition, epoch: int = 5
) -> CoordinatedTransaction:
    return CoordinatedTransaction("app", state, 4001, epoch, 1_699_999_999_000, frozenset(partitions))


def decided(committed: bool, *partitions: TopicPartition, epoch: int = 5) -> EndedTransaction:
    return EndedTransaction(4001, epoch, committed, frozenset(partitions), 0)


S = TransactionState
CASES: dict[
    str,
    tuple[
        CoordinatedTransaction | None,
        tuple[EndedTransaction, ...] | Unknown,
        TransactionEnding,
        EndingEvidence,
        bool,
    ],
] = {
    "in progress, with this partition": (
        coordinated(S.ONGOING, HERE),
        (),
        TransactionEnding.OPEN,
        EndingEvidence.COORDINATOR_HAS_IT,
        True,
    ),
    "the coordinator is about to write the marker": (
        coordinated(S.PREPARE_COMMIT, HERE, THERE),
        (),
        TransactionEnding.OPEN,
        EndingEvidence.COORDINATOR_ENDS_IT,
        True,
    ),
    "committed, and the decision is in the log": (
        coordinated(S.COMPLETE_COMMIT),
        (decided(True, HERE),),
        TransactionEnding.COMMITTED,
        EndingEvidence.DECISION_RECORD,
        True,
    ),
    "aborted by the coordinator, which raised the epoch": (
        coordinated(S.COMPLETE_ABORT, epoch=6),
        (decided(False, HERE, epoch=6),),
        TransactionEnding.ABORTED,
        EndingEvidence.DECISION_RECORD,
        True,
    ),
    "committed, then another one of the same producer elsewhere was aborted": (
        coordinated(S.COMPLETE_ABORT),
        (decided(True, HERE), decided(False, THERE)),
        TransactionEnding.COMMITTED,
        EndingEvidence.DECISION_RECORD,
        True,
    ),
    "committed, and another one is in progress elsewhere": (
        coordinated(S.ONGOING, THERE),
        (decided(True, HERE),),
        TransactionEnding.COMMITTED,
        EndingEvidence.DECISION_RECORD,
        True,
    ),
    "two without a marker in this partition, and they ended differently": (
        coordinated(S.COMPLETE_ABORT),
        (decided(True, HERE), decided(False, HERE)),
        TransactionEnding.UNDECIDED,
        EndingEvidence.DECISIONS_DIFFER,
        False,
    ),
    "decisions of an earlier life of the producer do not count": (
        coordinated(S.ONGOING, THERE),
        (decided(False, HERE, epoch=4),),
        TransactionEnding.UNDECIDED,
        EndingEvidence.ANOTHER_SINCE,
        False,
    ),
    "the log may not be read, the coordinator says committed": (
        coordinated(S.COMPLETE_COMMIT),
        NOT_READ,
        TransactionEnding.COMMITTED,
        EndingEvidence.LAST_OF_ITS_PRODUCER,
        False,
    ),
    "the log may not be read, and the epoch is another": (
        coordinated(S.COMPLETE_COMMIT, epoch=6),
        NOT_READ,
        TransactionEnding.UNDECIDED,
        EndingEvidence.ANOTHER_SINCE,
        False,
    ),
    "the log may not be read, another one is in progress": (
        coordinated(S.ONGOING, THERE),
        NOT_READ,
        TransactionEnding.UNDECIDED,
        EndingEvidence.ANOTHER_SINCE,
        False,
    ),
    "nobody knows the producer": (
        None,
        NOT_READ,
        TransactionEnding.UNDECIDED,
        EndingEvidence.FORGOTTEN,
        False,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_became_of_it(name: str) -> None:
    known, decisions, ending, evidence, certain = CASES[name]
    assert judge_transaction(OPEN, known, decisions) == TransactionJudgement(ending, evidence, certain)


COMMIT = RescuedMarker(HERE, 1000, 4001, 5, True)
ABORT = COMMIT._replace(committed=False)
FROM_RESCUE = {
    "the branch that was cut off holds its COMMIT": ((COMMIT,), TransactionEnding.COMMITTED, True),
    "or its ABORT, of a producer that was fenced": (
        (ABORT._replace(epoch=6),),
        TransactionEnding.ABORTED,
        True,
    ),
    "two branches agree": ((COMMIT, COMMIT._replace(diverged=900)), TransactionEnding.COMMITTED, True),
    "two branches do not": ((COMMIT, ABORT._replace(diverged=900)), TransactionEnding.UNDECIDED, False),
    "it began behind where the logs part: another transaction": (
        (COMMIT._replace(diverged=50),),
        TransactionEnding.UNDECIDED,
        False,
    ),
    "the marker is of the producer's earlier life": (
        (COMMIT._replace(epoch=4),),
        TransactionEnding.UNDECIDED,
        False,
    ),
    "of another producer": ((COMMIT._replace(producer_id=4002),), TransactionEnding.UNDECIDED, False),
    "in another partition": ((COMMIT._replace(tp=THERE),), TransactionEnding.UNDECIDED, False),
}


@pytest.mark.parametrize("name", FROM_RESCUE)
def test_a_marker_that_was_rescued_decides(name: str) -> None:
    markers, ending, certain = FROM_RESCUE[name]
    judged = judge_transaction(OPEN, coordinated(S.ONGOING, THERE), NOT_READ, markers)
    assert (judged.ending, judged.certain) == (ending, certain)
    if certain:
        assert judged.evidence is EndingEvidence.RESCUED_MARKER
        assert judge_transaction(OPEN, None, NOT_READ, markers) == judged, "forgotten by its coordinator"


def test_a_rescued_marker_that_the_coordinators_log_contradicts_decides_nothing() -> None:
    known = coordinated(S.COMPLETE_ABORT)
    judged = judge_transaction(OPEN, known, (decided(False, HERE),), (COMMIT,))
    assert judged == TransactionJudgement(TransactionEnding.UNDECIDED, EndingEvidence.DECISIONS_DIFFER, False)
    alive = judge_transaction(OPEN, coordinated(S.ONGOING, HERE), NOT_READ, (COMMIT,))
    assert alive.ending is TransactionEnding.OPEN, "its producer writes to it; its coordinator will end it"


def test_the_marker_that_is_missing() -> None:
    outcomes = {
        ending: TransactionJudgement(ending, EndingEvidence.DECISION_RECORD).committed
        for ending in TransactionEnding
    }
    assert outcomes == {
        TransactionEnding.OPEN: None,
        TransactionEnding.COMMITTED: True,
        TransactionEnding.ABORTED: False,
        TransactionEnding.UNDECIDED: None,
    }


def short(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def compact(text: str) -> bytes:
    return bytes([len(text) + 1]) + text.encode()


def value(version: int, status: int, *, cut: int = 0) -> bytes:
    """A TransactionLogValue of transaction 4001, epoch 5, in payments-0 and payments-2."""
    head = struct.pack(">hqhib", version, 4001, 5, 60_000, status)
    if version == 0:
        topics = struct.pack(">i", 1) + short("payments") + struct.pack(">iii", 2, 0, 2)
        tail = b""
    else:
        topics = bytes([2]) + compact("payments") + bytes([3]) + struct.pack(">ii", 0, 2) + b"\0"
        tail = b"\0"
    data = head + topics + struct.pack(">qq", 1000, 900) + tail
    return data[: len(data) - cut]


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(("status", "committed"), [(2, True), (3, False)])
def test_a_decision_is_read_from_its_record(version: int, status: int, committed: bool) -> None:
    partitions = frozenset({TopicPartition("payments", 0), TopicPartition("payments", 2)})
    assert decision_of(value(version, status)) == EndedTransaction(4001, 5, committed, partitions, 1000)


@pytest.mark.parametrize("status", [0, 1, 4, 5, 6, 7])
def test_other_states_name_no_decision(status: int) -> None:
    assert decision_of(value(1, status)) is None


def test_records_that_are_damaged_or_of_a_later_version() -> None:
    assert decision_of(struct.pack(">h", 2) + b"whatever") is None
    with pytest.raises(MalformedRecordError):
        decision_of(value(0, 2, cut=12))
    assert transactional_id_of(struct.pack(">h", 0) + short("app")) == "app"
    assert transactional_id_of(struct.pack(">h", 1) + b"?") is None


@pytest.mark.parametrize(("name", "partition"), [("app", 1), ("payments-app", 7), ("größe-1", 9)])
def test_the_partition_of_a_transactional_id(name: str, partition: int) -> None:
    """As Java: (s.hashCode() & 0x7fffffff) % 50."""
    assert state_partition(name, 50) == partition
