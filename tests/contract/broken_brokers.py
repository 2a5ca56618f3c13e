"""What a backend answers where brokers are dead, hang, or have lost a disk: who did not answer is said."""

from __future__ import annotations

import pytest

from backends.base.answers import Outcome, SurveyRequest
from recovery.model import Standing, TopicPartition, Unknown, Why
from tests.contract.backend_requests import MemoryRecorder, state, states, survey
from tests.contract.cluster_driver import ClusterDriver

HALF = TopicPartition("half", 0)


class DeadBrokerTests:
    """Broker 3 is dead: ``half`` goes on without it, ``alone`` is offline, ``moving`` waits for it to take over."""

    @pytest.fixture(scope="class")
    @classmethod
    def dead(cls, driver: ClusterDriver) -> ClusterDriver:
        driver.bring_all_up()
        driver.create_topic("half", [[1, 2, 3]], {"min.insync.replicas": "2"})
        driver.create_topic("alone", [[3]])
        driver.create_topic("moving", [[1, 2]])
        for topic in ("half", "alone"):
            driver.produce(topic, 10)
        driver.kill(3)
        driver.reassign("moving", 0, (2, 3))
        return driver

    async def test_it_is_listed_as_fenced(self, dead: ClusterDriver) -> None:
        async with dead.backend() as backend:
            found = await backend.cluster()
        assert [(broker.id, broker.fenced) for broker in found.brokers] == [
            (1, False),
            (2, False),
            (3, True),
        ]
        assert found.asked in (1, 2)

    async def test_its_replicas_are_offline_and_out_of_the_isr(self, dead: ClusterDriver) -> None:
        async with dead.backend() as backend:
            half, alone = await state(backend, "half"), await state(backend, "alone")
        assert (half.leader, set(half.isr), half.elr, half.offline_replicas) == (1, {1, 2}, (), (3,))
        assert alone.offline and alone.offline_replicas == (3,)
        assert (alone.isr, alone.elr, alone.last_known_elr) == ((), (3,), (3,))

    async def test_its_logs_are_unknown_and_the_others_are_not(self, dead: ClusterDriver) -> None:
        async with dead.backend() as backend:
            found = await survey(backend, "half")
            result = await backend.survey(SurveyRequest(await states(backend, "half"), 20.0))
        silent = found.replica(3)
        assert silent is not None and silent.standing is Standing.FENCED
        assert isinstance(silent.log, Unknown) and silent.log.why is Why.NOT_ANSWERED
        for broker in (1, 2):
            log = found.log(broker)
            assert log is not None and log.log_end_offset == 10
        contact = result.contact(3)
        assert contact is not None
        assert contact.problem is not None and contact.problem.why is Why.NOT_ANSWERED

    async def test_its_log_dirs_are_unknown_and_never_an_empty_list(self, dead: ClusterDriver) -> None:
        async with dead.backend() as backend:
            everybody, named = await backend.log_dirs(), await backend.log_dirs([3])
        for found in (everybody, named):
            dirs = found[3]
            assert isinstance(dirs, Unknown) and dirs.why is Why.NOT_ANSWERED
        assert not isinstance(everybody[1], Unknown)

    async def test_a_reassignment_to_it_stays_in_progress(self, dead: ClusterDriver) -> None:
        moving = TopicPartition("moving", 0)
        async with dead.backend() as backend:
            found = await dead.until(backend.reassignments, bool, "the reassignment to be listed")
            assert await backend.reassignments([moving]) == found
            assert await backend.reassignments([HALF]) == ()
            surveyed = await survey(backend, "moving")
        assert not isinstance(found, Unknown)
        (row,) = found
        assert (row.tp, set(row.replicas), row.adding, row.removing) == (moving, {1, 2, 3}, (3,), (1,))
        assert surveyed.reassigning is True

    async def test_nobody_can_be_elected_where_the_only_replica_is_dead(self, dead: ClusterDriver) -> None:
        alone = TopicPartition("alone", 0)
        record = MemoryRecorder()
        async with dead.backend() as backend:
            (found,) = await backend.elect(False, [alone], record)
            assert (await state(backend, "alone")).offline
        assert (found.outcome, found.leader) == (Outcome.FAILED, -1)
        assert "ELIGIBLE_LEADERS_NOT_AVAILABLE" in found.detail.upper().replace(" ", "_")
        assert record.ends["1"]["applied"] == []


class BrokenBrokerTests:
    """A broker that hangs, and one that has lost a disk."""

    @pytest.fixture
    def whole(self, driver: ClusterDriver) -> ClusterDriver:
        driver.bring_all_up()
        return driver

    async def test_a_broker_that_hangs_costs_no_more_than_the_duration(self, whole: ClusterDriver) -> None:
        whole.create_topic("hung", [[1, 2]])
        whole.produce("hung", 10)
        async with whole.backend() as backend:
            found = await states(backend, "hung")
            whole.pause(2)
            try:
                result = await backend.survey(SurveyRequest(found, 1.0))
            finally:
                whole.resume(2)
        (row,) = result.surveys
        silent = row.replica(2)
        assert row.log(1) is not None
        assert silent is not None and isinstance(silent.log, Unknown)
        assert silent.log.why is Why.NOT_ANSWERED
        contact = result.contact(2)
        assert contact is not None and contact.problem is not None

    async def test_a_lost_disk_is_told_as_such_and_its_replicas_are_offline(
        self, whole: ClusterDriver
    ) -> None:
        whole.create_topic("disks", [[3, 1]] * 6)
        async with whole.backend() as backend:
            before = (await backend.log_dirs([3]))[3]
            assert not isinstance(before, Unknown)
            on_lost = {one.tp.partition for one in before[1].replicas if one.tp.topic == "disks"}
            assert on_lost and len(on_lost) < 6
            whole.break_log_dir(3, 1)
            found = await whole.until(
                lambda: states(backend, "disks"),
                lambda states_now: (
                    {one.partition for one in states_now if 3 in one.offline_replicas} == on_lost
                ),
                f"replicas {on_lost} to be offline",
            )
            assert {one.leader for one in found if one.partition in on_lost} == {1}
            after = (await backend.log_dirs([3]))[3]
            assert not isinstance(after, Unknown)
            good, failed = after
            surveyed = (await backend.survey(SurveyRequest(found, 20.0))).surveys
        assert (good.error, failed.error, failed.path) == (None, "KAFKA_STORAGE_ERROR", before[1].path)
        assert (failed.total_bytes, failed.usable_bytes, failed.replicas) == (-1, -1, ())
        for row in surveyed:
            lost = row.replica(3)
            assert lost is not None
            assert isinstance(lost.log, Unknown) == (row.state.partition in on_lost)
            assert (lost.standing is Standing.OFFLINE_REPLICA) == (row.state.partition in on_lost)
        whole.bring_all_up()
