"""Partitions that are online after an unclean election: what to read before former members start."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.base.errors import NotAllowed
from backends.simulator.membership import SimulatedMembership
from tests.console.robot import console

SCENARIO = str(Path(__file__).parents[1] / "unit/cli/scenarios/online-after-unclean-election.yaml")


async def test_the_header_and_the_first_pane_say_whose_disks_to_read() -> None:
    async with console(SCENARIO, size=(119, 40)) as robot:
        await robot.sees("read the disks of 1,3 before they start", "0 offline")
        shown = " ".join(robot.screen.split())
        assert "Do first: Read the disks of brokers 1 and 3 before they start" in shown
        await robot.press("tab")
        reason = "They may hold acknowledged records that leader 2 of orders-0 (elected uncleanly at"
        await robot.until(lambda: reason in " ".join(robot.screen.split()), "the reason")


async def test_without_the_metadata_log_whoever_is_to_start_brokers_is_told_what_is_not_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refused(_: SimulatedMembership) -> None:
        raise NotAllowed("CLUSTER_ACTION", "cluster", "read the metadata log")

    monkeypatch.setattr(SimulatedMembership, "metadata_log", refused)
    async with console(SCENARIO, size=(140, 40)) as robot:
        await robot.sees("Not known: whether brokers that are down hold acknowledged records")
        shown = " ".join(robot.screen.split())
        assert "1 partition not judged" in shown and "CLUSTER_ACTION" in shown
        assert (
            "Do first: Start brokers 1 and 3: 1 partition lacks a copy. [8] "
            "! It is not known whether records on their disks are lost when they start: copy their disks first."
        ) in shown
