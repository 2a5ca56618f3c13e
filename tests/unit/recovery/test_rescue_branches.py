"""Every offset that an election cuts off is in exactly one branch, on a broker that holds it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

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
from recovery.rescue_branches import (
    BranchPart,
    DiskCopy,
    branches_with_disks,
    rescue_branches,
    unread_replicas,
)
from tests.repetitions import repetitions
from tests.unit.recovery.logs import WholeLog, cluster_logs
from tests.unit.recovery.test_loss import survey_of
from tests.unit.recovery.test_probe import probed


@settings(max_examples=repetitions(100, 400))
@given(cluster_logs(), st.data())
def test_the_branches_are_what_the_chosen_log_lacks(
    cluster: tuple[tuple[WholeLog, ...], int], data: st.DataObject
) -> None:
    logs, leader_epoch = cluster
    probes, _ = probed(logs, leader_epoch)
    chosen = data.draw(st.integers(0, len(logs) - 1))
    silent = frozenset(data.draw(st.sets(st.integers(0, len(logs) - 1)))) - {chosen}
    survey = survey_of(logs, probes, silent)
    lost = set().union(*(log.records() for i, log in enumerate(logs) if i != chosen and i not in silent))
    lost -= logs[chosen].records()
    read = []
    for branch in rescue_branches(survey, chosen):
        held = [(span.epoch, offset) for span in branch.spans for offset in range(span.start, span.end)]
        assert [offset for _, offset in held] == list(range(branch.start, branch.end))
        assert {pair for pair in held if pair[0] >= 0} <= logs[branch.broker].records()
        is_head = branch.part is BranchPart.HEAD
        assert is_head == (branch.end <= logs[chosen].start)
        read += [pair for pair in held if pair[0] >= 0]
    assert len(read) == len(set(read))
    assert lost <= set(read) | {pair for pair in lost if _of_unknown_epoch(survey, chosen, pair[1])}
    assert {one.broker for one in unread_replicas(survey, chosen)} == silent


def _of_unknown_epoch(survey: Survey, chosen: int, offset: int) -> bool:
    return any(
        span.epoch < 0 and span.start <= offset < span.end
        for branch in rescue_branches(survey, chosen)
        for span in branch.spans
    )


def _survey(logs: dict[int, ReplicaLog | Unknown]) -> Survey:
    replicas = tuple(Replica(broker, Standing.ELECTABLE, log) for broker, log in logs.items())
    return Survey(PartitionState("t", 0, "id", -1, 9, tuple(logs), (), (), (), ()), replicas, 2)


def test_the_stale_long_tail_is_read_from_its_only_holder() -> None:
    older = ReplicaLog(4, 1500, 0, 0, Lineage(0, (EpochSpan(0, 0, 1500),), 0), size=15_000)
    newer = ReplicaLog(4, 1300, 0, 0, Lineage(2, (EpochSpan(0, 0, 1000), EpochSpan(2, 1000, 1300)), 0))
    survey = _survey({1: older, 2: newer})
    (branch,) = rescue_branches(survey, 2)
    assert (branch.broker, branch.spans, branch.size) == (1, (EpochSpan(0, 1000, 1500),), 5000)
    (other,) = rescue_branches(survey, 1)
    assert (other.broker, other.spans) == (2, (EpochSpan(2, 1000, 1300),))


def test_a_lineage_that_may_not_be_read_is_an_unread_replica() -> None:
    known = ReplicaLog(4, 10, 0, 0, Lineage(0, (EpochSpan(0, 0, 10),), 0))
    denied = ReplicaLog(4, 20, lineage=Unknown(Why.NOT_ALLOWED, "needs READ on topic t"))
    survey = _survey({1: known, 2: denied})
    assert rescue_branches(survey, 1) == ()
    (unread,) = unread_replicas(survey, 1)
    assert unread.broker == 2 and "READ" in unread.why
    assert [one.broker for one in unread_replicas(survey, 2)] == [1]


def _log(*spans: tuple[int, int, int], log_dir: str = "") -> ReplicaLog:
    held = tuple(EpochSpan(*span) for span in spans)
    lineage = Lineage(held[-1].epoch, held, held[0].start)
    return ReplicaLog(9, held[-1].end, held[0].start, 0, lineage, log_dir)


SILENT = Unknown(Why.NOT_ANSWERED, "it is down")
CHOSEN, STALE = _log((0, 0, 1000), (2, 1000, 1300)), ((0, 0, 1500),)


def test_what_only_a_dead_brokers_disk_holds_is_read_from_the_disk() -> None:
    survey = _survey({1: SILENT, 2: CHOSEN, 3: SILENT})
    copies = (DiskCopy(1, _log(*STALE, log_dir="/mnt/1")),)
    (branch,) = branches_with_disks(survey, 2, copies)
    assert (branch.broker, branch.log_dir, branch.spans) == (1, "/mnt/1", (EpochSpan(0, 1000, 1500),))
    assert [one.broker for one in unread_replicas(survey, 2, copies)] == [3]


def test_what_a_broker_holds_too_is_read_from_the_broker() -> None:
    survey = _survey({1: SILENT, 2: CHOSEN, 3: _log((0, 0, 1200))})
    found = branches_with_disks(survey, 2, (DiskCopy(1, _log(*STALE, log_dir="/mnt/1")),))
    assert [(one.broker, one.log_dir, one.start, one.end) for one in found] == [
        (1, "/mnt/1", 1000, 1500),
    ], "the longer one has it all"
    found = branches_with_disks(survey, 2, (DiskCopy(1, _log((0, 0, 1200), log_dir="/mnt/1")),))
    assert [(one.broker, one.log_dir) for one in found] == [(3, "")]


def test_an_older_copy_of_the_leaders_own_disk_is_compared_with_its_log_of_now() -> None:
    survey = _survey({1: CHOSEN})
    (branch,) = branches_with_disks(survey, 1, (DiskCopy(1, _log(*STALE, log_dir="/copy")),))
    assert (branch.leader, branch.broker, branch.start, branch.end) == (1, 1, 1000, 1500)


def test_nothing_is_said_of_a_disk_where_the_chosen_log_is_not_known() -> None:
    survey = _survey({1: SILENT, 2: SILENT})
    copies = (DiskCopy(1, _log(*STALE, log_dir="/mnt/1")),)
    assert branches_with_disks(survey, 2, copies) == ()
    assert [one.broker for one in unread_replicas(survey, 2, copies)] == [1]
