"""The one who asks the cluster: looks that hang, overlap, come late, or fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.base.errors import Unreachable
from console.app.session import poller as poller_module
from console.app.session.poller import INTERVAL, OLD_SECONDS, OLD_SHARE, SHARE, Poller, Schedule
from console.app.session.view import Link, View, ViewRequest
from recovery.membership.quorum_without_leader import QuorumWithoutLeader
from recovery.model import TopicPartition
from tests.unit.widgets.examples import READING


def looked(took: float, schedule: Schedule | None = None, *, untypical: bool = False) -> Schedule:
    """After a look that began at 0."""
    return (schedule or Schedule()).begin(0.0).end(took, untypical=untypical)


def test_the_first_look_is_at_once_and_the_next_after_ten_seconds() -> None:
    assert Schedule().due(0.0) == 0.0
    assert looked(0.1).due(0.1) == INTERVAL
    assert looked(0.1).due(0.1 + INTERVAL) == 0.0


def test_no_look_begins_while_one_runs() -> None:
    running = Schedule().begin(0.0)
    assert running.due(1_000.0) is None
    with pytest.raises(AssertionError, match="overlap"):
        running.begin(1.0)


def test_what_is_asked_for_while_one_runs_is_looked_at_again_right_after() -> None:
    """The change that somebody waits for may have come after the running look passed it by."""
    ended = Schedule().begin(0.0).request().end(2.0)
    assert ended.due(2.0) == 0.0
    assert not ended.begin(2.0).end(3.0).requested


def test_paused_it_looks_only_when_asked() -> None:
    paused = looked(0.1).toggle_pause()
    assert paused.due(1_000.0) is None
    assert paused.request().due(1_000.0) == 0.0
    assert paused.toggle_pause().due(1_000.0) == 0.0


@given(took=st.floats(0.0, 100.0))
def test_looks_take_a_twentieth_of_the_time_unless_the_picture_would_be_old_by_then(took: float) -> None:
    between = looked(took).pause_between
    share = took / (took + between)
    assert between >= INTERVAL
    assert share <= 1 / OLD_SHARE + 1e-9
    # The picture of the look before is shown until the next one has ended.
    in_time = between + 2 * took <= OLD_SECONDS + 1e-9
    assert share <= 1 / SHARE + 1e-9 or in_time or share >= 1 / OLD_SHARE - 1e-9


@pytest.mark.parametrize("took", [1.0, 3.0, 5.0])
def test_a_look_of_some_seconds_leaves_no_old_picture(took: float) -> None:
    assert looked(took).pause_between + took < OLD_SECONDS


def test_a_cluster_that_does_not_answer_is_asked_again_soon_however_long_the_silence_took() -> None:
    assert looked(60.0, untypical=True).due(60.0) == INTERVAL


PATIENCE = 0.01
"""Seconds of the clock that is set by hand: a look is looked after that often."""


class Cluster:
    """Answers when it is let; a mock, since no real cluster can be told when to answer."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []
        self.now_asking = 0
        self.most_at_once = 0
        self.let = asyncio.Event()
        self.let.set()
        self.problem: Exception | None = None
        self.lost: QuorumWithoutLeader | None = None

    async def whole(self, before: View, _wanted: ViewRequest, generation: int) -> View:
        return await self._answer("whole", before, generation)

    async def part(self, before: View, _wanted: ViewRequest, generation: int) -> View:
        return await self._answer("part", before, generation)

    async def _answer(self, what: str, before: View, generation: int) -> View:
        self.asked.append((what, generation))
        self.now_asking += 1
        self.most_at_once = max(self.most_at_once, self.now_asking)
        try:
            await self.let.wait()
            if self.problem is not None:
                raise self.problem
            view = replace(before, generation=generation, at=1.0)
            return view if self.lost is None else replace(view, reading=replace(READING, lost=self.lost))
        finally:
            self.now_asking -= 1


class Stage:
    """A poller with its cluster, a clock that is set by hand, and what it showed."""

    def __init__(self) -> None:
        self.now = 0.0
        self.shown: list[View] = []
        self.failures: list[Exception] = []
        self.cluster = Cluster()
        self.poller = Poller(self.cluster, lambda: self.now, self.shown.append, lambda: None, self._failed)
        self.poller.patience = PATIENCE

    def _failed(self, error: Exception) -> str:
        self.failures.append(error)
        return "a crash file was written"

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not condition():  # noqa: ASYNC110  # any condition
                await asyncio.sleep(0)


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_looks_never_overlap_however_often_they_are_asked_for(stage: Stage) -> None:
    stage.cluster.let.clear()
    stage.poller.start()
    await stage.until(lambda: len(stage.cluster.asked) == 1)
    for _ in range(5):
        stage.poller.ask()
        await asyncio.sleep(0)
    assert len(stage.cluster.asked) == 1
    stage.cluster.let.set()
    await stage.until(lambda: len(stage.shown) == 2)
    assert stage.cluster.most_at_once == 1
    assert [what for what, _ in stage.cluster.asked] == ["whole", "whole"]
    await stage.poller.stop()


async def test_what_a_look_tells_after_it_was_given_up_is_not_heard(stage: Stage) -> None:
    stage.cluster.let.clear()
    stage.poller.start()
    await stage.until(lambda: len(stage.cluster.asked) == 1)
    _, generation = stage.cluster.asked[0]
    await stage.poller.stop()
    stage.poller.tell(View(generation, at=3.0))
    assert stage.shown == []


async def test_a_look_goes_on_for_as_long_as_it_makes_progress(stage: Stage) -> None:
    stage.cluster.let.clear()
    stage.poller.start()
    await stage.until(lambda: len(stage.cluster.asked) == 1)
    _, generation = stage.cluster.asked[0]
    for step in range(20):
        stage.now += 0.9 * PATIENCE
        stage.poller.progressed(generation, "asking replicas", step, 20)
        await asyncio.sleep(2 * PATIENCE)  # what must not happen has no condition: it had twice its time
    assert stage.poller.progress == ("asking replicas", 19, 20, stage.now)
    assert stage.poller.state.link is Link.CONNECTING and stage.poller.state.problem == ""
    stage.cluster.let.set()
    await stage.until(lambda: stage.poller.state.link is Link.UP)
    assert len(stage.cluster.asked) == 1
    await stage.poller.stop()


async def test_a_look_without_progress_is_given_up_and_begun_anew_and_no_cluster_is_lost_by_it(
    stage: Stage,
) -> None:
    stage.poller.start()
    await stage.until(lambda: stage.poller.state.link is Link.UP)
    seen = stage.poller.view
    stage.cluster.let.clear()
    stage.poller.ask()
    await stage.until(lambda: len(stage.cluster.asked) == 2)
    _, given_up = stage.cluster.asked[1]
    stage.now += 2 * PATIENCE
    await stage.until(lambda: "made no progress" in stage.poller.state.problem)
    assert stage.poller.state.link is Link.UP and stage.poller.view is seen
    assert stage.poller.state.schedule.pause_between == INTERVAL
    stage.poller.progressed(given_up, "asking replicas", 1, 2)
    assert stage.poller.progress is None, "what a refresh reports after it was given up is not of the next"
    stage.cluster.let.set()
    stage.poller.ask()
    await stage.until(lambda: stage.poller.state.problem == "")
    await stage.poller.stop()


@pytest.mark.parametrize("leaderless", [False, True])
async def test_without_a_leader_the_next_look_comes_as_usual_however_long_this_one_took(
    stage: Stage, leaderless: bool
) -> None:
    stage.poller.start()
    await stage.until(lambda: len(stage.shown) == 1)
    stage.cluster.lost = QuorumWithoutLeader("c", (), False, "") if leaderless else None
    stage.cluster.let.clear()
    stage.poller.ask()
    await stage.until(lambda: len(stage.cluster.asked) == 2)
    stage.now += 20.0
    stage.cluster.let.set()
    await stage.until(lambda: stage.poller.state.schedule.ended == 20.0)
    assert stage.poller.state.schedule.slowed is not leaderless
    await stage.poller.stop()


async def test_the_last_picture_stays_while_the_cluster_is_lost_and_it_is_found_again(stage: Stage) -> None:
    stage.poller.start()
    await stage.until(lambda: stage.poller.state.link is Link.UP)
    seen = stage.poller.view
    stage.cluster.problem = Unreachable("no broker could be asked")
    stage.poller.ask()
    await stage.until(lambda: stage.poller.state.link is Link.LOST)
    assert stage.poller.view is seen
    assert "no broker" in stage.poller.state.problem
    stage.cluster.problem = None
    stage.poller.ask()
    await stage.until(lambda: stage.poller.state.link is Link.UP)
    assert stage.poller.state.problem == ""
    await stage.poller.stop()


async def test_a_defect_in_reading_does_not_take_the_console_away(stage: Stage) -> None:
    stage.cluster.problem = KeyError("a defect")
    stage.poller.start()
    await stage.until(lambda: bool(stage.failures))
    await stage.until(lambda: stage.poller.state.problem == "a crash file was written")
    stage.cluster.problem = None
    stage.poller.ask()
    await stage.until(lambda: stage.poller.state.link is Link.UP)
    await stage.poller.stop()


async def test_the_logs_under_the_cursor_are_asked_once_it_rests(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.poller.start()
    await stage.until(lambda: stage.poller.state.link is Link.UP)
    stage.poller.want(ViewRequest(frozenset({TopicPartition("orders", 1)})))
    await asyncio.sleep(0)
    assert len(stage.cluster.asked) == 1
    stage.now += poller_module.SETTLE_SECONDS
    stage.poller.want(ViewRequest(frozenset({TopicPartition("orders", 2)})))
    stage.now += poller_module.SETTLE_SECONDS
    await stage.until(lambda: len(stage.cluster.asked) == 2)
    assert stage.cluster.asked[1][0] == "part"
    await stage.poller.stop()
