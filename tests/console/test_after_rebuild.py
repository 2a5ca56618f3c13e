"""After a quorum was rebuilt, the key M tells what comes next before it replaces anything."""

from __future__ import annotations

from typing import Any

import pytest

from backends.live.metadata_log import LiveMetadataLog
from recovery.membership.after_rebuild import AfterRebuild
from recovery.membership.voters import ReplicaKey, Voter
from recovery.metadata_log.rebuilt_log import RebuiltLog
from tests.console.robot import console


@pytest.fixture
def rebuilt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The metadata log tells that the quorum was rebuilt."""
    read = LiveMetadataLog.read

    async def read_rebuilt(log: LiveMetadataLog, **how: Any) -> int:
        count = await read(log, **how)
        log.history.rebuilt = RebuiltLog(4, 9, 1, (Voter(ReplicaKey(107)),))
        return count

    monkeypatch.setattr(LiveMetadataLog, "read", read_rebuilt)
    monkeypatch.setattr("console.app.session.cluster_refresh.EPOCH_MARGIN", 0)


@pytest.mark.usefixtures("rebuilt")
async def test_m_shows_the_steps_after_a_rebuild_and_still_leads_to_a_replacement() -> None:
    async with console("controller-node-failure", size=(120, 40)) as robot:
        await robot.opens("4")
        await robot.sees("The quorum was rebuilt at offset 4", "M: all steps")
        await robot.press("M")
        await robot.takes("steps")
        await robot.sees("After the rebuild", "1. [")
        await robot.press("escape")
        await robot.idle()
        await robot.press("M")
        await robot.takes("replacement")
        await robot.sees("Why is controller 102 replaced?")


@pytest.mark.usefixtures("rebuilt")
async def test_old_voters_that_run_are_an_alarm_on_every_pane(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second quorum is beside this one, and nothing else is wrong: the first pane must not look well."""
    monkeypatch.setattr(AfterRebuild, "alarms", ("2 QUORUMS with the same cluster id", "an old voter runs"))
    async with console("quorum-growing-1-to-3", size=(120, 40)) as robot:
        await robot.sees("4 Quorum 2 findings", "; 2 findings")
        await robot.opens("4")
        await robot.sees("2 QUORUMS with the same cluster id (1 more finding: M)")


@pytest.mark.usefixtures("rebuilt")
async def test_a_second_quorum_is_the_first_thing_to_do_on_the_first_pane(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(AfterRebuild, "second_quorum", ("107",))
    async with console("quorum-growing-1-to-3", size=(120, 40)) as robot:
        await robot.sees("2 QUORUMS", "Do first: Stop controller 107: a rebuild replaced it")
