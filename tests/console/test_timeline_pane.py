"""Pane 7: what happened, newest last; it goes on while one looks."""

from __future__ import annotations

import re

import pytest

from backends.base.errors import NotAllowed
from backends.base.protocol import Backend
from backends.simulator.adapter import SimulatorBackend
from backends.simulator.membership import SimulatedMembership
from console.jobs.timeline import timeline_feed
from console.jobs.timeline.timeline_pane import TimelinePane
from console.jobs.timeline.timeline_report import TimelineRow
from console.simulator_backend import scenario
from console.target import Target
from recovery.metadata_log.partition_states import EventKind
from tests.console.robot import Robot, console

STORY = "last-replica-standing"


class Incident:
    """A simulated cluster in which the test makes things happen, on the backend's thread."""

    def __init__(self) -> None:
        self.backend = SimulatorBackend(scenario(STORY))

    def make(self, _target: Target, _say: object) -> SimulatorBackend:
        return self.backend

    async def starts(self, robot: Robot, broker: int) -> None:
        async def job(_: Backend) -> None:
            self.backend.simulation.world.start_broker(broker)
            await self.backend.advance(10)

        await robot.session.run(job)


def rows(robot: Robot) -> tuple[TimelineRow, ...]:
    return tuple(robot.desk.parts.timeline.view.rows)


async def test_the_newest_event_is_last_and_under_the_cursor() -> None:
    async with console(STORY, size=(140, 40)) as robot:
        await robot.opens("7")
        await robot.sees("OFFLINE: the last ISR member was", "times are virtual")
        await robot.until(lambda: robot.desk.table.cursor_key == rows(robot)[-1].key, "the newest event")
        assert [row.time_ms for row in rows(robot)] == sorted(row.time_ms for row in rows(robot))
        assert not any(row.new for row in rows(robot))


async def test_what_happens_meanwhile_is_marked_as_new_until_one_has_looked() -> None:
    incident = Incident()
    async with console(STORY, size=(140, 40), make=incident.make) as robot:
        await robot.opens("7")
        await robot.until(lambda: rows(robot), "the timeline")
        known = len(rows(robot))
        await robot.opens("1")
        await incident.starts(robot, 2)
        assert len(rows(robot)) == known, "nothing is read while the pane is not open"
        await robot.opens("7")
        await robot.sees("broker 2 registered", " new ", "new")
        new = [row for row in rows(robot) if row.new]
        assert rows(robot)[known:] == tuple(new)
        assert EventKind.BROKER_UNFENCED in {row.kind for row in new}
        await robot.until(lambda: robot.desk.table.cursor_key == new[-1].key, "the cursor on the newest")
        await robot.opens("1")
        await robot.opens("7")
        await robot.settled()
        assert not any(row.new for row in rows(robot))


async def test_events_are_filtered_by_topic_broker_kind_and_time() -> None:
    async with console(STORY, size=(140, 40)) as robot:
        await robot.opens("7")
        await robot.until(lambda: robot.desk.table.counts.rows, "the timeline")
        await robot.filters("broker fenced")
        kinds = {row.kind for row in robot.desk.table.shown_rows}
        assert EventKind.BROKER_FENCED in kinds and EventKind.TOPIC_CREATED not in kinds
        await robot.press("escape")
        await robot.filters("payments")
        shown = robot.desk.table.shown_rows
        assert shown and all("payments" in row.topics for row in shown)
        await robot.press("escape")
        await robot.filters("T+0 s")
        assert {row.time_ms for row in robot.desk.table.shown_rows} == {0}
        await robot.press("escape", "t")
        await robot.sees("grouped by topic")


async def test_a_log_that_may_not_be_read_says_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(_: SimulatedMembership) -> None:
        raise NotAllowed("CLUSTER_ACTION", "the cluster", "reading the metadata log")

    allowed = SimulatedMembership.metadata_log
    monkeypatch.setattr(SimulatedMembership, "metadata_log", refused)
    async with console(STORY, size=(100, 30)) as robot:
        await robot.opens("7")
        await robot.sees("CLUSTER_ACTION", "ktriage timeline --metadata-dir COPY")
        monkeypatch.setattr(SimulatedMembership, "metadata_log", allowed)
        monkeypatch.setattr(timeline_feed, "PAUSE_AFTER_ERROR", 0.01)
        await robot.opens("1")
        await robot.opens("7")
        await robot.sees("payments-0 OFFLINE")
        assert "CLUSTER_ACTION" not in robot.screen


async def test_a_long_reading_is_left_and_gone_on_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """Left in the middle: no event is missing later, and none comes twice."""
    monkeypatch.setattr(timeline_feed, "SLICE", 1)
    async with console("zone-power-loss", size=(140, 40)) as robot:
        for _ in range(5):
            robot.desk.parts.timeline.show(True)
            await robot.pilot.pause(0.001)
            robot.desk.parts.timeline.show(False)
        await robot.opens("7")
        await robot.until(lambda: rows(robot), "the timeline")
        await robot.settled()
        keys = [row.key for row in rows(robot)]
        assert len(keys) == len(set(keys)) > 20
        assert isinstance(robot.desk.pane_of("7"), TimelinePane)
        assert "topic clicks created" in {row.text for row in rows(robot)}


async def test_how_long_a_partition_is_offline_is_exact_where_the_log_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with console("zone-power-loss", size=(140, 40)) as robot:
        row = robot.desk.table.shown_rows[0]
        assert row.state.offline and row.exact
        assert "≥" not in robot.screen

    async def refused(_: SimulatedMembership) -> None:
        raise NotAllowed("CLUSTER_ACTION", "the cluster", "reading the metadata log")

    monkeypatch.setattr(SimulatedMembership, "metadata_log", refused)
    async with console("zone-power-loss", size=(140, 40)) as robot:
        assert not robot.desk.table.shown_rows[0].exact
        assert re.search(r"payments-\d +\? ", robot.screen), "since when is not known"
