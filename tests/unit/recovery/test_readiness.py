"""What no simulation can show of readiness: clocks, how long logs are kept, full disks, the operator's host."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from recovery.membership.controllers_asked import AskedController, ControllersAsked, MetadataRetention
from recovery.membership.preflight import LivenessLimits
from recovery.membership.quorum import QuorumReplica
from recovery.membership.quorum_health import health
from recovery.model import Broker, PartitionState, Unknown, Why
from recovery.readiness import DirRoom, OperatorHost, ReadinessFacts, Weight, readiness
from tests.unit.membership.quorums import NOW, key, progress, quorum

GIB = 1 << 30
DAY = 24 * 3_600_000
NOT_ANSWERED = Unknown(Why.NOT_ANSWERED, "no answer")


def voters(*observers: QuorumReplica, nodes: tuple[int, ...] = (1, 2, 3), **changed: Any) -> Any:
    plain = quorum(*nodes, **changed)
    return health(replace(plain, progress=(*plain.progress, *observers)), LivenessLimits(), nodes)


ASKED = ControllersAsked(
    (AskedController("host1:9093", 1, "the-cluster", 1),),
    retention={"controller 1": MetadataRetention(7 * DAY, 100 << 20)},
)
GOOD = ReadinessFacts(
    now_ms=NOW,
    brokers=tuple(Broker(n, f"host{n}", 9092, f"rack{n}", False) for n in (11, 12, 13)),
    reach={11: None, 12: None, 13: None},
    states=(PartitionState("orders", 0, "id", 11, 3, (11, 12, 13), (11, 12, 13), (), (), ()),),
    operator=OperatorHost(True, "", 50 * GIB, "/rescue", (NOW - 100, NOW + 100)),
    configs={"orders": {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}},
    elr=True,
    elr_offered=True,
    blocks_on_dead_leader=False,
    quorum=voters(*(progress(key(n)) for n in (11, 12, 13))),
    asked=ASKED,
    static_upgrade=True,
    dirs={n: (DirRoom(n, "/data", None, 100 * GIB, 60 * GIB),) for n in (11, 12, 13)},
    largest_log=GIB,
)

WEAK: dict[str, tuple[dict[str, Any], str, Weight, str]] = {
    "the controller's clock is ahead": (
        {"operator": GOOD.operator._replace(clock_ms=(NOW - 9_000, NOW - 8_000))},
        "clocks",
        Weight.SERIOUS,
        "the clock of controller 1 is 8.0 s ahead of this host's",
    ),
    "the controller's clock is behind": (
        {"operator": GOOD.operator._replace(clock_ms=(NOW + 5_000, NOW + 6_000))},
        "clocks",
        Weight.SERIOUS,
        "5.0 s behind this host's",
    ),
    "the log begins an hour ago": (
        {"log_since_ms": NOW - 3_600_000},
        "metadata log",
        Weight.SERIOUS,
        "goes back 1.0 hours",
    ),
    "the log is kept for an hour": (
        {"asked": replace(ASKED, retention={"controller 1": MetadataRetention(3_600_000, -1)})},
        "metadata log",
        Weight.SERIOUS,
        "controller 1 keeps the metadata log too short: metadata.max.retention.ms 3,600,000",
    ),
    "a disk is nearly full": (
        {"dirs": {11: (DirRoom(11, "/data", None, 100 * GIB, 10 * GIB),)}},
        "disks",
        Weight.SERIOUS,
        "/data of broker 11 has 10.0 GiB free (10%)",
    ),
    "a disk is full": (
        {"dirs": {11: (DirRoom(11, "/data", None, 100 * GIB, GIB),)}},
        "disks",
        Weight.GRAVE,
        "(1%)",
    ),
    "the journal is private": (
        {"operator": GOOD.operator._replace(journal_shared=False)},
        "journal",
        Weight.LIGHT,
        "a colleague cannot resume",
    ),
    "the journal cannot be written": (
        {"operator": GOOD.operator._replace(journal_problem="no space")},
        "journal",
        Weight.SERIOUS,
        "could not be recorded: no space",
    ),
    "no room for rescued records": (
        {"operator": GOOD.operator._replace(free_bytes=GIB // 2)},
        "rescue space",
        Weight.SERIOUS,
        "512.0 MiB free in /rescue, and the largest log has 1.0 GiB",
    ),
    "KAFKA-19522": ({"blocks_on_dead_leader": True}, "known faults", Weight.SERIOUS, "KAFKA-19522"),
    "a broker has no copy of the metadata log": (
        {"quorum": voters(progress(key(11)), progress(key(12)))},
        "copies of it",
        Weight.SERIOUS,
        "broker 13 without the newest metadata",
    ),
    "a voter is a broker": (
        {"quorum": voters(progress(key(12)), progress(key(13)), nodes=(1, 2, 11))},
        "quorum",
        Weight.LIGHT,
        "11 is voter and broker in one process",
    ),
    "static voters where the release can change that": (
        {"quorum": voters(*(progress(key(n)) for n in (11, 12, 13)), kraft_version=0)},
        "quorum",
        Weight.SERIOUS,
        "the voters are static",
    ),
}


def test_a_good_cluster_scores_100_and_everything_was_looked_at() -> None:
    result = readiness(GOOD)
    assert result.weaknesses == ()
    assert result.incomplete == ()
    assert result.score == 100
    assert not result.at_least(Weight.LIGHT)


@pytest.mark.parametrize("name", WEAK)
def test_one_weakness_is_told_by_one_check(name: str) -> None:
    changed, check, weight, words = WEAK[name]
    result = readiness(replace(GOOD, **changed))
    assert [(where, one.weight) for where, one in result.weaknesses] == [(check, weight)]
    assert words in result.weaknesses[0][1].evidence
    assert result.score is not None
    assert result.score < 100
    assert result.at_least(weight)


def test_what_could_not_be_looked_at_is_named_and_is_neither_good_nor_bad() -> None:
    result = readiness(
        replace(
            GOOD,
            quorum=NOT_ANSWERED,
            asked=None,
            elr=NOT_ANSWERED,
            blocks_on_dead_leader=None,
            log_since_ms=NOT_ANSWERED,
            configs={"orders": NOT_ANSWERED},
            dirs={11: NOT_ANSWERED},
            largest_log=None,
            rights_unknown=("not known: READ on Topic:*",),
            unseen="2 topics may not be seen by this user",
        )
    )
    assert result.weaknesses == ()
    unknown = {one.check for one in result.incomplete}
    assert unknown == {
        "partitions now",
        "permissions",
        "replicas",
        "racks",
        "min ISR",
        "unclean elections",
        "eligible leaders",
        "known faults",
        "quorum",
        "controllers reached",
        "metadata log",
        "copies of it",
        "disks",
        "clocks",
        "rescue space",
    }
    assert result.at_least(Weight.GRAVE)
    assert result.score is None, "too little is known"


def test_the_gravest_weakness_is_told_first() -> None:
    result = readiness(
        replace(
            GOOD,
            operator=GOOD.operator._replace(journal_shared=False),
            dirs=WEAK["a disk is full"][0]["dirs"],
            blocks_on_dead_leader=True,
        )
    )
    assert [one.weight for _, one in result.weaknesses] == [Weight.GRAVE, Weight.SERIOUS, Weight.LIGHT]


def test_where_two_replicas_are_all_no_line_lowers_min_isr_to_one() -> None:
    two = GOOD.states[0]._replace(topic="two", replicas=(11, 12), isr=(11, 12))
    three = GOOD.states[0]._replace(topic="all")
    configs = {
        "two": {"min.insync.replicas": "2"},
        "all": {"min.insync.replicas": "3"},
    }
    (_, both), *_ = readiness(replace(GOOD, states=(two, three), configs=configs)).weaknesses
    assert both.command.endswith("--entity-name all --add-config min.insync.replicas=2")
    assert "topics with two replicas need a third one first" in both.mend
    (_, alone), *_ = readiness(replace(GOOD, states=(two,), configs=configs)).weaknesses
    assert alone.command == ""
