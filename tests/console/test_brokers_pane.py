"""Pane 8: every broker, whether it answers, since when it is fenced, and what waits for its return."""

from __future__ import annotations

from backends.base.answers import ClusterInfo, LogDir, Partitions
from backends.base.failed_disks import LogDirs
from console.reading.broker_report import BrokerHealth, BrokerRow, broker_rows
from console.reading.cluster_reading import ClusterReading
from recovery.broker_load import BrokerLoad, broker_loads
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.log_changes import DecodedRecord
from recovery.metadata_log.offline_since import fenced_since_ms
from recovery.metadata_log.records import BrokerRegistrationChangeRecord
from recovery.model import Broker, PartitionState, Unknown, Why
from tests.console.faults import happens
from tests.console.robot import console


def state(
    partition: int, leader: int, isr: tuple[int, ...], elr: tuple[int, ...] | None = ()
) -> PartitionState:
    return PartitionState("orders", partition, "id", leader, 1, (1, 2, 3), isr, elr, (), ())


def reading(brokers: list[Broker], log_dirs: LogDirs) -> ClusterReading:
    return ClusterReading(ClusterInfo("id", tuple(brokers), 1, False), Partitions(()), log_dirs=log_dirs)


def test_what_hangs_on_a_broker_is_counted() -> None:
    loads = broker_loads(
        [state(0, 1, (1, 2, 3)), state(1, 1, (1,)), state(2, -1, (), (3,)), state(3, -1, (3,))]
    )
    assert loads[1] == BrokerLoad(4, 2, 2, 2, 0)
    assert loads[2] == BrokerLoad(4, 1, 0, 2, 0)
    assert loads[3] == BrokerLoad(4, 2, 0, 2, 2)


def test_a_broker_is_fenced_since_the_last_time_that_it_was_fenced() -> None:
    def record(offset: int, fenced: bool, batch: int = 7) -> DecodedRecord:
        return DecodedRecord(offset, offset * 1000, batch, BrokerRegistrationChangeRecord(2, 1, fenced))

    history = MetadataHistory()
    history.extend_decoded([record(1, fenced=True), record(2, fenced=False), record(3, fenced=True)])
    assert fenced_since_ms(history, 2) == 3000
    history.extend_decoded([record(4, fenced=True)])
    assert fenced_since_ms(history, 2) == 3000, "it was fenced all the time"
    history.extend_decoded([record(5, fenced=False)])
    assert fenced_since_ms(history, 2) is None


async def test_a_dead_broker_stands_first_with_what_waits_for_it() -> None:
    async with console("zone-power-loss", size=(120, 30)) as robot:
        await robot.opens("8")
        await robot.sees("4 brokers: 1 FENCED", "broker 2 at broker-2.simulated", "rack a")
        await robot.sees("The controller has fenced it for", "It does not answer", "connection refused")
        await robot.sees("8 offline partitions may get a leader when it returns")
        row = robot.desk.table.cursor_row
        assert isinstance(row, BrokerRow)
        assert row.exact, "the metadata log tells when it was fenced"


async def test_a_broker_that_answers_and_is_not_in_the_isr_yet_is_said_to_be_so() -> None:
    async with console("zone-power-loss", size=(120, 30)) as robot:
        await robot.opens("8")
        await robot.puts_the_cursor_on(3)
        await robot.sees("It answers; 4 of 8 partitions in the ISR.")
        row = robot.desk.table.cursor_row
        assert isinstance(row, BrokerRow)
        assert row.state is BrokerHealth.OUT_OF_SYNC


async def test_whom_pane_1_warns_of_is_not_to_be_started_first_in_pane_8_either() -> None:
    async with console("stale-long-tail", size=(120, 30)) as robot:
        await robot.sees("Do not start broker 3")
        await robot.opens("8")
        await robot.sees("1, but not first", "But do not start it first: see pane 1.")


def test_a_broker_with_a_failed_disk_stands_above_those_that_are_only_out_of_sync() -> None:
    brokers = [Broker(broker, "host", 9092, None, False) for broker in (1, 2, 3)]
    dirs: LogDirs = {
        1: (LogDir(1, "/kafka", None, 9, 9, ()),),
        2: (LogDir(2, "/kafka", "KAFKA_STORAGE_ERROR", 9, 9, ()),),
        3: Unknown(Why.NOT_ANSWERED, "refused"),
    }
    loads = dict.fromkeys((1, 2, 3), BrokerLoad(4, 3, 1, 0, 0))
    rows = broker_rows(reading(brokers, dirs), loads, ())
    assert [(row.id, row.failed_dirs) for row in rows] == [(3, None), (2, 1), (1, 0)]


def test_a_broker_that_refuses_is_not_silent() -> None:
    """As ``status`` has it: who may not ask was answered."""
    refused: LogDirs = {1: Unknown(Why.NOT_ALLOWED, "needs DESCRIBE on the cluster")}
    (row,) = broker_rows(reading([Broker(1, "host", 9092, None, False)], refused), {}, ())
    assert (row.state, row.asked, row.failed_dirs) == (BrokerHealth.UP, True, None)


async def test_nothing_waits_for_a_broker_that_is_there_with_a_failed_disk() -> None:
    async with console("disk-failure", size=(120, 30)) as robot:
        await robot.opens("8")
        await robot.sees("3 brokers: 1 disk FAILED", "1 log dir on it failed: pane 5")
        row = robot.desk.table.cursor_row
        assert isinstance(row, BrokerRow)
        assert (row.id, row.load.waiting, row.waiting) == (2, 4, 0)
        assert "may get a leader when it returns" not in robot.screen
        await robot.opens("1")
        await robot.sees("broker 2 FAILED", "no candidate")
        assert "wait for 2" not in robot.screen


async def test_when_a_broker_answered_last_is_kept() -> None:
    async with console("last-replica-standing", size=(120, 30)) as robot:
        await robot.opens("8")
        await happens(robot, lambda b: b.simulation.world.kill_broker(0))
        await robot.looks_again()
        await robot.puts_the_cursor_on(0)
        await robot.sees("It does not answer", "it answered")


async def test_without_a_leader_of_the_quorum_the_states_are_called_those_of_before() -> None:
    async with console("two-of-three-voters-lost", size=(120, 30)) as robot:
        await robot.opens("8")
        await robot.sees("As before, ", "3 brokers: 1 no answer, 2 up")
        await robot.opens("3")
        await robot.sees("who waits for a leader is not known: no controller leads")
        assert "no partition waits" not in robot.screen
