"""Which partitions stand first in pane 1."""

from __future__ import annotations

from dataclasses import replace

from backends.base.answers import ClusterInfo, Partitions
from console.app.session.rows import Rows, shaped
from console.app.session.view import Choosing, JudgedSurvey, LogRead, View
from console.reading.cluster_reading import ClusterReading
from recovery.acknowledged.verdict import PartitionVerdicts
from recovery.model import ReplicaLog, Survey, Unknown, Why
from recovery.plan.importance import Importance, TopicTier
from tests.unit.recovery.surveys import log, survey

LOG = log((0, 0, 10))
TIERS = Importance((TopicTier("critical", ("payments*",)),))


def named(topic: str, row: Survey) -> Survey:
    return row._replace(state=row.state._replace(topic=topic))


def looked(surveys: tuple[Survey, ...]) -> View:
    states = tuple(one.state for one in surveys)
    reading = ClusterReading(ClusterInfo("id", (), 1, False), Partitions(()), surveys)
    return View(troubled=states, reading=reading)


def test_the_worst_come_first_and_of_these_the_most_important() -> None:
    """A partition that refuses acks=all before one that only lacks a copy, whatever its topic."""
    logs: dict[int, ReplicaLog | Unknown] = dict.fromkeys((1, 2, 3), LOG)
    short, under = survey(logs, leader=1, isr=(1, 2)), survey(logs, leader=1, isr=(1,))
    surveys = (
        named("payments", short),
        named("audit", under),
        named("payments-eu", under),
        named("orders", survey(logs)),
        named("__consumer_offsets", survey(logs)),
    )
    rows = shaped(looked(surveys), Choosing(importance=TIERS), Rows(), others=False).partitions
    order = ["__consumer_offsets", "orders", "payments-eu", "audit", "payments"]
    assert [row.state.topic for row in rows] == order


def test_a_partition_that_nobody_can_lead_stands_first_however_small_it_is() -> None:
    large: dict[int, ReplicaLog | Unknown] = dict.fromkeys((1, 2, 3), log((0, 0, 1000)))
    dead: dict[int, ReplicaLog | Unknown] = dict.fromkeys((1, 2, 3), Unknown(Why.NOT_ANSWERED, "down"))
    surveys = (
        named("payments", survey(large)),
        named("audit", survey(dead)),
    )
    view = looked(surveys)
    assert view.reading is not None
    judged = {one.tp: JudgedSurvey(one, LogRead(None, False), frozenset()) for one in surveys}
    verdicts = {one.tp: PartitionVerdicts({}) for one in surveys}
    view = replace(view, judged=judged, reading=replace(view.reading, verdicts=verdicts))
    rows = shaped(view, Choosing(importance=TIERS), Rows(), others=False).partitions
    assert [row.state.topic for row in rows] == ["audit", "payments"]
