"""``--metadata-dir`` in the console: a copied metadata log, while the active controller's cannot be read.

The last replica standing: 2 was the last in the ISR and is down, 0 and 1 answer, nobody leads.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from backends.base.errors import NotAllowed, Unreachable
from backends.metadata_log.copied_log import CopiedMetadataLog, read_copy
from backends.simulator.adapter import SimulatorBackend
from backends.simulator.encoded_metadata_log import EncodedMetadataLog
from backends.simulator.membership import SimulatedMembership
from backends.simulator.scenario.files import read
from console.app.session.view import Link
from recovery.acknowledged.verdict import ConditionKind, Verdict
from recovery.model import TopicPartition
from tests.console.robot import Robot, console
from tests.unit.cli.command_process import invoke

SCENARIO = "last-replica-standing"
PARTITION = TopicPartition("payments", 0)
HOUR = 3_600_000


@pytest.fixture
def out_of_reach(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From now on no controller can be reached."""

    async def refused(_: SimulatedMembership) -> None:
        raise Unreachable("no controller answers")

    return lambda: monkeypatch.setattr(SimulatedMembership, "metadata_log", refused)


@pytest.fixture
def copy_dir(tmp_path: Path) -> Path:
    """The metadata log of the scenario when the operator comes."""
    scenario = read(SCENARIO)
    simulation = SimulatorBackend(scenario, 1).load(0)
    simulation.advance_to(scenario.operator_at)
    log = EncodedMetadataLog(simulation.world.committed_records)
    log.catch_up()
    log.write(tmp_path)
    return tmp_path


def copy_of(directory: Path) -> CopiedMetadataLog:
    return read_copy(directory, HOUR)


def verdict(robot: Robot) -> Verdict:
    return robot.session.view.verdicts[PARTITION].candidates[1]


def conditions(robot: Robot) -> set[ConditionKind]:
    return {one.kind for one in verdict(robot).conditions}


async def test_the_copy_judges_and_dates_where_no_controller_answers(
    copy_dir: Path, out_of_reach: Callable[[], None]
) -> None:
    out_of_reach()
    async with console(SCENARIO) as robot:
        assert ConditionKind.NO_UNCLEAN_ELECTION in conditions(robot)
        assert not robot.desk.table.shown_rows[0].exact
    async with console(SCENARIO, copy=copy_of(copy_dir)) as robot:
        assert verdict(robot).none
        assert conditions(robot) == {ConditionKind.RECORDS_KEPT}, "any broker may have started again since"
        assert robot.desk.table.shown_rows[0].exact
        assert f"--metadata-dir {copy_dir}" in robot.desk.command_line()


async def test_a_choice_is_judged_by_the_copy_too(copy_dir: Path, out_of_reach: Callable[[], None]) -> None:
    out_of_reach()
    async with console(SCENARIO, copy=copy_of(copy_dir)) as robot:
        await robot.chooses(1)
        plan = robot.session.draft.plan
        assert plan is not None
        assert plan.rows[0].chosen.verdict == verdict(robot)


async def test_the_timeline_tells_the_copy_until_the_controller_answers(
    copy_dir: Path, out_of_reach: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    within_reach = SimulatedMembership.metadata_log
    out_of_reach()
    async with console(SCENARIO, size=(160, 40), copy=copy_of(copy_dir)) as robot:
        await robot.opens("7")
        await robot.sees("payments-0 OFFLINE", "from the copy", "no controller answers", "ends at 1970-01-01")
        told = [row.key for row in robot.desk.parts.timeline.view.rows]
        monkeypatch.setattr(SimulatedMembership, "metadata_log", within_reach)
        await robot.opens("1")
        await robot.opens("7")
        await robot.sees("from the active controller")
        assert [row.key for row in robot.desk.parts.timeline.view.rows] == told
        assert "ends at" not in robot.screen


async def test_what_a_copy_does_not_hold_is_named_in_the_timeline(
    copy_dir: Path, out_of_reach: Callable[[], None]
) -> None:
    out_of_reach()
    damaged = copy_of(copy_dir)._replace(start_offset=500, problem="its last batch is cut off")
    async with console(SCENARIO, size=(160, 40), copy=damaged) as robot:
        await robot.opens("7")
        await robot.sees("what happened before offset 500 is not known", "its last batch is cut off")


async def test_a_copy_of_another_cluster_is_refused_and_nothing_is_judged_by_it(copy_dir: Path) -> None:
    (copy_dir / "meta.properties").write_text("version=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qk\n")
    async with console(SCENARIO, size=(160, 24), copy=copy_of(copy_dir), looked=False) as robot:
        await robot.link_is(Link.LOST)
        await robot.sees("is the metadata log of cluster MkU3OEVBNTcwNTJENDM2Qk", "this one is simulated")
        assert not robot.session.view.verdicts


async def test_one_reading_serves_the_verdicts_and_the_timeline(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    begin = SimulatedMembership.metadata_log

    async def counted(membership: SimulatedMembership) -> object:
        opened.append(membership.title)
        return await begin(membership)

    monkeypatch.setattr(SimulatedMembership, "metadata_log", counted)
    async with console(SCENARIO, size=(140, 30)) as robot:
        assert verdict(robot).none
        await robot.opens("7")
        await robot.sees("payments-0 OFFLINE")
        await robot.looks_again()
        assert len(opened) == 1


async def test_a_log_that_cannot_be_read_on_may_lack_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read before still tells who was in sync; not that no broker has started again since."""
    async with console(SCENARIO) as robot:
        assert not conditions(robot)
        source = robot.session.metadata_log

        async def refused(*_: object) -> None:
            raise NotAllowed("CLUSTER_ACTION", "the cluster", "reading the metadata log")

        with monkeypatch.context() as without_permission:
            without_permission.setattr(source._log.__class__, "read", lambda *_, **__: refused())
            await robot.looks_again()
            assert verdict(robot).none
            assert conditions(robot) == {ConditionKind.RECORDS_KEPT}
        await robot.looks_again()
        assert not conditions(robot)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--metadata-dir", "."), "the console needs a terminal"),
        (("--metadata-dir", ".", "status"), "cluster options come after the command: ktriage status"),
    ],
)
def test_a_copy_needs_the_console(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    ended = invoke(tmp_path, "ktriage", *words)
    assert ended.status == 2
    assert told in ended.err
