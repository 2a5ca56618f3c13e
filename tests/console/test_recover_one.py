"""Three in the morning: one partition is offline, and somebody who never saw the console gets it back."""

from __future__ import annotations

from pathlib import Path

from recovery.model import TopicPartition
from tests.console.faults import happens
from tests.console.robot import console, records

PAYMENTS = TopicPartition("payments", 0)


async def test_the_last_replica_standing_is_recovered_from_the_keyboard(home: Path) -> None:
    async with console("last-replica-standing", guide=True) as robot:
        await robot.sees("READ-ONLY", "SIMULATOR", "OFFLINE", "payments-0")
        # 1 holds every acknowledged record; 2 would be elected by itself, whatever its log lost.
        assert "wait for 2" not in robot.screen
        await robot.press("enter")
        await robot.sees("Replica log info: payments-0", "1,560", "1,260")
        await robot.plans(1)
        await robot.arms()
        await robot.sees("ARMED")
        confirmation = await robot.asks_to_apply()
        assert confirmation.request.expected == "payments"
        assert confirmation.request.needs_reason
        await robot.confirms("payments", "broker 2 lost its unflushed records")
        await robot.idle()
        await robot.hears("leads payments-0. acks=all is refused until replicas are back (ISR 1 of min ISR 2")
        await robot.until(lambda: robot.leaders() == {PAYMENTS: 1}, "payments-0 led by 1")
        await robot.until(lambda: not robot.session.view.offline, "nothing offline in the picture")
        await robot.sees("Guide: elected, and the 20 offsets that this cut off are saved.")
    (lines,) = records(home)
    assert lines[0]["reason"] == "broker 2 lost its unflushed records"
    steps = [line["kind"] for line in lines]
    assert steps == ["run", "before", "after", "before", "before", "after", "after", "end"]
    done = [line["action"] for line in lines if line["kind"] == "before"]
    assert done == ["rescue", "planned-elections", "elect"]


async def test_a_partition_that_is_led_and_refuses_writes_is_not_called_recovered() -> None:
    """No other replica comes back: nothing written with acks=all is taken, and consumers see nothing new."""
    async with console("last-replica-standing", guide=True, size=(140, 40)) as robot:
        await happens(robot, lambda b: b.simulation.world.kill_broker(0))
        await robot.looks_again()
        await robot.plans(1)
        await robot.arms()
        await robot.applies("payments", "nobody else is left")
        await robot.hears("leads payments-0. acks=all is refused until replicas are back (ISR 1 of min ISR 2")
        await robot.until(lambda: not robot.session.view.offline, "nothing offline in the picture")
        await robot.sees("Guide: elected; payments-0 has ISR 1 of min ISR 2: acks=all is refused")
        await robot.sees("still missing: ISR 1", "not in ISR", "0, 2; acks=all is refused")
        assert "recovered" not in robot.screen


async def test_nobody_is_told_to_wait_for_a_broker_whose_disk_failed() -> None:
    """It would return with an empty disk: the question of the key c knows of the disk, as the row does."""
    async with console("disk-failure", size=(140, 40)) as robot:
        await robot.sees("disk of broker 2 FAILED")
        await robot.puts_the_cursor_on(TopicPartition("archive", 1))
        await robot.press("c")
        await robot.sees("Keep which log of archive-1? The disk of broker 2 failed: read it first")
        assert "wait for 2" not in robot.screen
