"""Log dirs: what a failed one held, and what would happen if a healthy one failed."""

from __future__ import annotations

from console.jobs.disks.log_dirs_pane import row_key
from tests.console.faults import happens, passes
from tests.console.robot import console


async def test_a_failed_dir_stands_out_and_a_healthy_one_is_reckoned_with() -> None:
    async with console("disk-failure", size=(140, 40)) as robot:
        await robot.opens("5")
        await robot.sees("1 failed", "KAFKA_STORAGE_ERROR")
        await robot.puts_the_cursor_on((1, "/kafka/0"))
        await robot.sees("WHAT IF broker 1 /kafka/0 failed?", "new leader: 2")
        await robot.puts_the_cursor_on((2, "/kafka/1"))
        await robot.until(
            lambda: robot.desk.parts.log_dir.shown is not None and robot.desk.parts.log_dir.shown.failed,
            "what the failed dir held",
        )
        shown = robot.desk.parts.log_dir.shown
        assert shown is not None
        assert shown.outcomes
        await robot.sees("LAST COPY LOST: 2")
        assert "another failed dir" not in robot.screen, "no other one failed"


async def test_the_disk_of_the_best_surviving_log_is_never_called_a_small_loss() -> None:
    async with console("last-replica-standing", size=(160, 40)) as robot:
        await robot.opens("5")
        await robot.until(lambda: robot.desk.table.counts.rows, "log dirs")
        mine = next(row for row in robot.desk.table.shown_rows if row[0] == 1)
        await robot.puts_the_cursor_on(row_key(mine))
        await robot.sees("a surviving copy lost: 1", "the best one", "left")
        assert "one replica fewer" not in robot.screen


async def test_a_failed_disk_stays_failed_when_its_broker_stops() -> None:
    async with console("disk-failure", size=(140, 40)) as robot:
        await robot.opens("5")
        await robot.sees("1 failed", "KAFKA_STORAGE_ERROR")
        await happens(robot, lambda b: b.simulation.world.kill_broker(2))
        await passes(robot, 10.0)
        await robot.looks_again()
        await robot.sees("1 disk failed", "when broker 2 last listed it", "those of 1 broker unknown")
        await robot.opens("3")
        await robot.sees("Broker 2's disk FAILED under")
        assert "Broker 2 back: a leader for 8 of 8" not in robot.screen
