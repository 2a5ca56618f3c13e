"""What one look at the cluster asks, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from backends.base.answers import Depth, SurveyRequest, SurveyResult
from backends.base.errors import NoLeader
from backends.base.protocol import Progress
from backends.simulator.adapter import SimulatorBackend
from backends.simulator.membership import SimulatedMembership
from console.app.session.cluster_refresh import SELDOM_SECONDS, ClusterRefresh
from console.app.session.view import View, ViewRequest
from console.reading.offline_times import AGAIN_SECONDS
from console.simulator_backend import scenario
from recovery.acknowledged import from_metadata_log
from recovery.acknowledged.broker_restarts import BrokerRestart, broker_restarts
from recovery.metadata_log.history import MetadataHistory
from recovery.model import TopicPartition, Unknown, Why

SCENARIO = "offline-2000"


class Asked(SimulatorBackend):
    """Counts what it is asked."""

    def __init__(self, name: str) -> None:
        super().__init__(scenario(name))
        self.surveyed: list[SurveyRequest] = []
        self.configured: list[tuple[str, ...]] = []
        self.dirs = 0

    async def survey(self, request: SurveyRequest, progress: Progress | None = None) -> SurveyResult:
        self.surveyed.append(request)
        return await super().survey(request, progress)

    async def topic_configs(self, topics: Sequence[str]):  # type: ignore[no-untyped-def]  # as it is above
        self.configured.append(tuple(topics))
        return await super().topic_configs(topics)

    async def log_dirs(self, brokers: Sequence[int] | None = None):  # type: ignore[no-untyped-def]  # as above
        self.dirs += 1
        return await super().log_dirs(brokers)


class Flapping(Asked):
    """``silent`` did not answer the newest request for logs."""

    silent: int | None = None

    async def survey(self, request: SurveyRequest, progress: Progress | None = None) -> SurveyResult:
        result = await super().survey(request, progress)
        why = Unknown(Why.NOT_ANSWERED, "within 5 s")
        contacts = tuple(c._replace(problem=why) if c.broker == self.silent else c for c in result.contacts)
        return SurveyResult(result.surveys, contacts)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.long
async def test_logs_are_asked_only_of_what_is_in_trouble_or_on_the_screen() -> None:
    backend = Asked(SCENARIO)
    told: list[View] = []
    refresh = ClusterRefresh(Clock(), told.append)
    view = await refresh.read_all(backend, View(), ViewRequest(), 1)
    (request,) = backend.surveyed
    assert len(request.partitions) == 2_000
    assert view.partitions is not None
    assert len(view.partitions.states) == 3_000
    clicks = TopicPartition("clicks-0", 0)
    await refresh.read_all(backend, view, ViewRequest(frozenset({clicks}), clicks), 2)
    wide, deep = backend.surveyed[1:]
    assert len(wide.partitions) == 2_000
    assert [state.tp for state in deep.partitions] == [clicks]
    assert (wide.depth, deep.depth) == (Depth.DIVERGENCE, Depth.FULL)
    await backend.close()


@pytest.mark.long
async def test_what_did_not_change_is_the_very_same_object_and_is_not_asked_again() -> None:
    backend, clock = Asked(SCENARIO), Clock()
    refresh = ClusterRefresh(clock, lambda _view: None)
    first = await refresh.read_all(backend, View(), ViewRequest(), 1)
    clock.now += 10
    second = await refresh.read_all(backend, first, ViewRequest(), 2)
    assert second.reading is not None and first.reading is not None
    assert second.reading.surveys is first.reading.surveys
    assert second.troubled is first.troubled
    assert second.since is first.since
    assert second.at == first.at + 10 if first.at is not None else False
    # Of the ten topics that are well nobody needs the configuration; of the others it is asked once a minute.
    by_us = [topics for topics in backend.configured if len(topics) == 20]
    assert backend.dirs == 1
    clock.now += SELDOM_SECONDS
    third = await refresh.read_all(backend, second, ViewRequest(), 3)
    assert third.reading is not None and first.reading is not None
    assert third.reading.configs is first.reading.configs
    assert len([topics for topics in backend.configured if len(topics) == 20]) > len(by_us)
    assert backend.dirs == 2
    await backend.close()


async def test_the_first_picture_is_told_while_it_fills_and_later_ones_when_they_are_whole() -> None:
    backend = Asked("last-replica-standing")
    told: list[View] = []
    refresh = ClusterRefresh(Clock(), told.append)
    first = await refresh.read_all(backend, View(), ViewRequest(), 1)
    assert told[0].cluster is not None
    assert told[0].partitions is None
    assert any(view.partitions is not None and view.quorum is None for view in told)
    told.clear()
    await refresh.read_all(backend, first, ViewRequest(), 2)
    assert told == []
    await backend.close()


async def test_a_metadata_log_that_nobody_served_is_asked_for_again_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[float] = []
    backend, clock = Asked("last-replica-standing"), Clock()

    async def refused(_: SimulatedMembership) -> None:
        asked.append(clock.now)
        raise NoLeader("the quorum has no leader")

    monkeypatch.setattr(SimulatedMembership, "metadata_log", refused)
    refresh = ClusterRefresh(clock, lambda _view: None)
    view = await refresh.read_all(backend, View(), ViewRequest(), 1)
    clock.now += 1
    view = await refresh.read_all(backend, view, ViewRequest(), 2)
    assert asked == [100.0], "a controller out of reach does not hold up every look"
    monkeypatch.undo()
    clock.now += AGAIN_SECONDS
    view = await refresh.read_all(backend, view, ViewRequest(), 3)
    assert view.reading is not None
    assert len(view.reading.offline_times.since) == 1
    await backend.close()


async def test_a_broker_that_did_not_answer_is_said_until_all_that_it_was_asked_is_asked_again() -> None:
    """It answers for the partition under the cursor; of the others its logs are still missing. Broker 2 is down."""
    backend, clock = Flapping("last-replica-standing"), Clock()
    refresh = ClusterRefresh(clock, lambda _view: None)
    backend.silent = 1
    view = await refresh.read_all(backend, View(), ViewRequest(), 1)
    cursor = frozenset({view.troubled[0].tp})
    backend.silent = None
    clock.now += 1
    moved = await refresh.read_logs(backend, view, ViewRequest(cursor), 2)
    assert moved.reading is not None
    assert moved.reading.problems[1] is not None
    assert moved.answered[1] == clock.now, "the pane of brokers tells it beside that"
    backend.silent = 0
    moved = await refresh.read_logs(backend, moved, ViewRequest(cursor), 3)
    assert moved.reading is not None
    assert {b for b, problem in moved.reading.problems.items() if problem is not None} == {0, 1, 2}
    backend.silent = None
    whole = await refresh.read_all(backend, moved, ViewRequest(), 4)
    assert whole.reading is not None
    assert {b for b, problem in whole.reading.problems.items() if problem is not None} == {2}
    await backend.close()


async def test_what_the_metadata_log_tells_of_brokers_is_read_once_for_all_partitions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Read for each of them, it takes the square of their number: with 20,000 nothing was advised for minutes."""
    read: list[int] = []

    def counted(history: MetadataHistory, broker: int) -> tuple[BrokerRestart, ...]:
        read.append(broker)
        return broker_restarts(history, broker)

    monkeypatch.setattr(from_metadata_log, "broker_restarts", counted)
    backend = Asked("zone-power-loss")
    refresh = ClusterRefresh(Clock(), lambda _view: None)
    view = await refresh.read_all(backend, View(), ViewRequest(), 1)
    assert len(view.judged) == 8
    assert read and len(read) <= 2 * len(set(read)), "for the verdicts, and for the disks to read first"
    await backend.close()
