"""``i``: the log of a replica whose broker is down, from a file that was read from its disk."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from console.app.base.question_dialogs import TextQuestion
from recovery.disk_evidence import RegistrationFacts
from recovery.model import TopicPartition
from tests.console.robot import Robot, console
from tests.unit.disk_scan.evidence_files import evidence_file, scanned_log

pytestmark = pytest.mark.long

PAYMENTS = TopicPartition("payments", 0)
SPANS = ((0, 0, 1000), (2, 1000, 1300))


async def gives(robot: Robot, home: Path, metadata_end: int = 1 << 40) -> None:
    view = robot.session.view
    log = scanned_log("payments", view.surveys[PAYMENTS].state.topic_id, SPANS, 3)
    made = (home / "broker-3.json", 3, view.cluster_id, log)
    file = await asyncio.to_thread(lambda: evidence_file(*made, metadata_end=metadata_end))
    await robot.press("i")
    await robot.asked(TextQuestion)
    await robot.types(str(file))
    await robot.press("enter")
    await robot.idle()


async def test_a_read_disk_counts_as_the_answer_of_a_silent_replica(home: Path) -> None:
    async with console("stale-long-tail", size=(140, 40)) as robot:
        await robot.press("enter")
        await robot.sees("not answered")
        await gives(robot, home)
        await robot.hears("1 log of broker 3 from its disk, read 2026-11-22 21:08:20 UTC")
        await robot.sees("its disk, read 2026-11-22", "--evidence")
        survey = robot.session.view.surveys[PAYMENTS]
        assert survey.log(3) is not None


async def test_a_disk_does_not_count_where_nobody_tells_whether_its_broker_ran_since(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def not_read(*_: object) -> tuple[dict[int, RegistrationFacts], str | None]:
        return {}, "the metadata log was not read within 30 s"

    monkeypatch.setattr("console.jobs.disks.disk_evidence_key.read_registrations", not_read)
    async with console("stale-long-tail", size=(140, 40)) as robot:
        await robot.press("enter")
        await gives(robot, home)
        await robot.hears("whether broker 3 ran after its disk was read is not known")
        assert not robot.session.evidence


async def test_a_disk_of_a_broker_that_came_back_since_is_refused_by_name(home: Path) -> None:
    async with console("stale-long-tail", size=(140, 40)) as robot:
        await robot.press("enter")
        await gives(robot, home, metadata_end=1)
        await robot.hears(
            "refused: payments-0 of broker 3: broker 3 registered again after its disk was read"
        )
        assert robot.session.view.surveys[PAYMENTS].log(3) is None
