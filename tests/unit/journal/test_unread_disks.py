"""Disks that nobody read before an election, as the journal keeps them open until they are read or waived."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.base.answers import Outcome
from console.journal.change_kinds import KEEP_LOG
from console.journal.journal import Journal
from console.journal.planned_elections import PLANNED, ElectionResult, results_detail
from console.journal.unfinished_entries import unfinished
from console.journal.unread_disks import (
    DISK_READ,
    DISK_WAIVED,
    DiskPartition,
    disk_read_detail,
    waived_detail,
)
from recovery.model import PartitionState, TopicPartition
from recovery.unread_disks import UnreadDisk, UnreadDiskState, before_start, disk_outcomes, still_to_read
from recovery.wording.unread_disk_text import unread_disk_lines
from tests.unit.journal.runs import CLUSTER, journal

ORDERS, PAYMENTS = TopicPartition("orders", 0), TopicPartition("payments", 1)
SILENT = [
    {"broker": 3, "topics": [{"topic": "orders", "topicId": "id-o", "partitions": [0]}]},
    {"broker": 4, "topics": [{"topic": "payments", "topicId": "id-p", "partitions": [1]}]},
]


def planned(run: Journal, plan_id: str = "p-1", unread: object = SILENT) -> str:
    return run.before(PLANNED, {"planId": plan_id, "file": "plan.json", "unread": unread})


def ended(run: Journal, entry: str, *tps: TopicPartition, outcome: Outcome = Outcome.ELECTED) -> None:
    run.after(entry, results_detail(ElectionResult(tp, str(outcome), -1, 2, 7) for tp in tps))


def read(run: Journal, broker: int, tp: TopicPartition, plan_id: str = "") -> None:
    detail = disk_read_detail(broker, ["/mnt/3"], "/rescue", plan_id, [DiskPartition(tp, "id")])
    run.after(run.before(DISK_READ, detail), {})


def left(root: Path) -> list[tuple[int, TopicPartition]]:
    return [(disk.broker, disk.tp) for disk in unfinished(CLUSTER, root).unread_disks]


def test_an_election_leaves_each_silent_replica_open_until_its_disk_is_read(tmp_path: Path) -> None:
    with journal(tmp_path, "one") as run:
        ended(run, planned(run), ORDERS, PAYMENTS)
    assert left(tmp_path) == [(3, ORDERS), (4, PAYMENTS)]
    assert unfinished(CLUSTER, tmp_path).nothing, "it holds up no other change"
    with journal(tmp_path, "two") as run:
        read(run, 3, PAYMENTS)
        assert left(tmp_path) == [(3, ORDERS), (4, PAYMENTS)], "that partition of it was not read"
        read(run, 3, ORDERS)
    assert left(tmp_path) == [(4, PAYMENTS)]


def test_an_operator_who_waives_a_disk_says_which_topics(tmp_path: Path) -> None:
    with journal(tmp_path) as run:
        ended(run, planned(run), ORDERS, PAYMENTS)
        run.after(run.before(DISK_WAIVED, waived_detail(4, [DiskPartition(ORDERS, "")])), {})
        assert left(tmp_path) == [(3, ORDERS), (4, PAYMENTS)]
        run.after(run.before(DISK_WAIVED, waived_detail(4, [DiskPartition(PAYMENTS, "")])), {})
    assert left(tmp_path) == [(3, ORDERS)]


@pytest.mark.parametrize("plan_id", ["p-1", "another"])
def test_a_disk_that_was_read_for_the_same_plan_before_its_election_is_done(
    tmp_path: Path, plan_id: str
) -> None:
    with journal(tmp_path) as run:
        read(run, 3, ORDERS, plan_id)
        ended(run, planned(run), ORDERS)
    assert left(tmp_path) == ([] if plan_id == "p-1" else [(3, ORDERS)])


def test_an_election_that_was_not_carried_out_leaves_nothing_and_one_without_an_end_may_have(
    tmp_path: Path,
) -> None:
    with journal(tmp_path) as run:
        entry = planned(run)
        assert left(tmp_path) == [(3, ORDERS), (4, PAYMENTS)]
        ended(run, entry, ORDERS, outcome=Outcome.STALE)
        assert left(tmp_path) == []


def test_a_killed_runs_disk_can_be_read_and_waived_too(tmp_path: Path) -> None:
    with journal(tmp_path, "killed") as run:
        planned(run)
    with journal(tmp_path, "later") as run:
        read(run, 3, ORDERS)
        run.after(run.before(DISK_WAIVED, waived_detail(4, [DiskPartition(PAYMENTS, "")])), {})
    assert left(tmp_path) == []


def test_a_later_election_at_which_the_broker_told_its_log_takes_the_place_of_the_earlier_one(
    tmp_path: Path,
) -> None:
    with journal(tmp_path) as run:
        ended(run, planned(run), ORDERS, PAYMENTS)
        ended(run, planned(run, "p-2", SILENT[1:]), ORDERS)
    assert left(tmp_path) == [(4, PAYMENTS)]


@pytest.mark.parametrize("end", ["kept", "cut off", "not kept"])
def test_a_broker_that_is_out_of_the_assignment_keeps_its_log_until_the_next_election(
    tmp_path: Path, end: str
) -> None:
    row = {"topic": "orders", "partition": 0, "brokers": [3], "replicas": [1, 2], "end": end, "why": ""}
    with journal(tmp_path) as run:
        keep = run.before(KEEP_LOG, {"planId": "p-1", "moves": []})
        ended(run, planned(run), ORDERS, PAYMENTS)
        run.after(keep, {"kept": [row]})
        kept = {disk.tp: disk.set_aside for disk in unfinished(CLUSTER, tmp_path).unread_disks}
        assert kept == {ORDERS: end == "kept", PAYMENTS: False}
        ended(run, planned(run, "p-2"), ORDERS)
    assert not any(disk.set_aside for disk in unfinished(CLUSTER, tmp_path).unread_disks)


def test_nothing_is_cut_off_where_nobody_is_known_to_have_been_elected() -> None:
    disk = UnreadDisk(3, ORDERS, "id-o")
    nobody = AWAY._replace(leader=-1, isr=())
    assert disk_outcomes([disk], [nobody], {1, 2}) == {disk: UnreadDiskState.NO_LEADER}
    assert disk_outcomes([disk], [AWAY], {1, 2}) == {disk: UnreadDiskState.AWAY}
    assert list(unread_disk_lines([disk], {disk: UnreadDiskState.NO_LEADER})) == []


AWAY = PartitionState("orders", 0, "id-o", 2, 7, (1, 2, 3), (2,), None, None, (3,))
UP = AWAY._replace(offline_replicas=())


@pytest.mark.parametrize(
    ("now", "up", "outcome"),
    [
        (AWAY, {1, 2}, UnreadDiskState.AWAY),
        (UP._replace(isr=(2, 3)), {1, 2, 3}, UnreadDiskState.CAME_BACK),
        (UP, {1, 2, 3}, UnreadDiskState.CAME_BACK),
        (AWAY, {1, 2, 3}, UnreadDiskState.DISK_FAILED),
        (AWAY._replace(replicas=(1, 2)), {1, 2}, UnreadDiskState.NO_REPLICA),
        (AWAY._replace(topic_id="made again"), {1, 2, 3}, UnreadDiskState.NO_TOPIC),
        (AWAY._replace(leader=-1, isr=()), {1, 2}, UnreadDiskState.AWAY),
    ],
    ids=[
        "away",
        "in sync again",
        "up",
        "up, its log dir is offline",
        "no replica",
        "another topic",
        "offline again",
    ],
)
def test_what_became_of_a_disk_is_seen_in_the_cluster(
    now: PartitionState, up: set[int], outcome: UnreadDiskState
) -> None:
    disk = UnreadDisk(3, ORDERS, "id-o", 7)
    assert disk_outcomes([disk], [now], up) == {disk: outcome}
    assert disk_outcomes([disk], [], up) == {}, "who does not see the partition says nothing of it"


def test_each_broker_and_fate_is_one_line() -> None:
    three, four = UnreadDisk(3, ORDERS), UnreadDisk(4, PAYMENTS)
    away, back = unread_disk_lines(
        [four, three], {three: UnreadDiskState.AWAY, four: UnreadDiskState.CAME_BACK}
    )
    assert away.startswith("before broker 3 is started, read its disk (ktriage rescue read")
    assert "orders-0 is cut off when it starts" in away
    assert back.startswith("broker 4 came back unread: what it alone held of payments-1 is gone")
    assert len(list(unread_disk_lines([three, four]))) == 2
    failed = {three: UnreadDiskState.DISK_FAILED}
    assert before_start(failed) == still_to_read([three], failed) == (three,)
    (line,) = unread_disk_lines([three], failed)
    assert line.startswith("before the failed disk of broker 3 is replaced, read it")
