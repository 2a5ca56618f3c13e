"""What nobody told yet is never shown as good news."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.jobs.consumers.after_pane import AfterPane, AfterView
from console.jobs.consumers.election_aftermath import ElectionAftermath
from console.jobs.disks.log_dirs_pane import LogDirsPane
from console.reading.log_dirs_report import DirRow, dir_rows
from console.reading.partition_report import PartitionsView
from console.reading.partitions_pane import PartitionsPane
from recovery.model import Unknown, Why
from tests.unit.widgets import examples
from tests.unit.widgets.harness import Harness, text_of
from widgets.eligible_pane import EligiblePane, EligibleView


async def test_partitions_that_nobody_told_are_not_counted_as_well() -> None:
    pane = PartitionsPane()
    async with Harness(pane).run_test(size=(80, 24)) as pilot:
        pane.update(PartitionsView(None, title="Offline"))
        await pilot.pause()
        assert "Offline: not known yet" in text_of(pilot.app)
        assert "0 offline" not in text_of(pilot.app)
        pane.update(PartitionsView(examples.READING, title="Offline"))
        await pilot.pause()
        assert "0 offline" in text_of(pilot.app)


async def test_whether_anybody_waits_for_a_leader_is_not_known_before_it_was_told() -> None:
    pane = EligiblePane()
    async with Harness(pane).run_test(size=(80, 24)) as pilot:
        pane.update(EligibleView((), known=False))
        await pilot.pause()
        assert "is not known yet" in text_of(pilot.app).splitlines()[0]
        pane.update(EligibleView(()))
        await pilot.pause()
        assert "no partition waits" in text_of(pilot.app).splitlines()[0]


async def test_an_empty_list_of_groups_says_why_it_is_empty_now() -> None:
    """It said "nothing was read yet" under a summary of what was read: the rows were the same none as before."""
    pane = AfterPane()
    refused = Unknown(Why.NOT_ALLOWED, "needs DESCRIBE on groups")
    async with Harness(pane).run_test(size=(80, 24)) as pilot:
        pane.update(AfterView())
        await pilot.pause()
        assert "nothing was read yet" in text_of(pilot.app)
        pane.update(AfterView(ElectionAftermath(refused, refused)))
        await pilot.pause()
        assert "nothing was read yet" not in text_of(pilot.app)
        assert "not all was read: see above" in text_of(pilot.app)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (None, "the log dirs are not known yet"),
        (
            dir_rows(replace(examples.READING, log_dirs={1: Unknown(Why.NOT_ANSWERED, "broker 1")})),
            "no broker listed its log dirs",
        ),
    ],
)
async def test_log_dirs_that_nobody_told_are_not_counted_as_whole(
    rows: tuple[DirRow, ...] | None, told: str
) -> None:
    pane = LogDirsPane()
    async with Harness(pane).run_test(size=(80, 24)) as pilot:
        pane.update(rows)
        await pilot.pause()
        assert told in text_of(pilot.app)
        assert "0 failed" not in text_of(pilot.app)
