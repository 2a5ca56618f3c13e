"""Elections of offline partitions: the one that was asked for, or none, and why."""

from __future__ import annotations

import pytest

from backends.base.answers import LogPosition, Outcome
from backends.base.errors import NotAllowed
from recovery.model import TopicPartition, Unknown, Why
from recovery.plan.judgement import Reason
from tests.contract.backend_requests import (
    MemoryRecorder,
    aggressive_choice,
    choices,
    designate,
    offsets_of,
    state,
    states,
    survey,
)
from tests.contract.cluster_driver import ClusterDriver
from tests.plan_rows import with_log

TOPICS = (
    "chosen", "fenced", "stale", "unrecorded", "stopped", "denied", "unclean", "many",
    "being-moved", "taken", "returned", "stuck", "last",
)  # fmt: skip
REPLICAS = (1, 2, 3)


class OfflinePartitionTests:
    """Every topic is offline: 3, the only ELR member, is dead; 1 and 2 are alive, 2 with the longer log."""

    @pytest.fixture(scope="class")
    @classmethod
    def incident(cls, driver: ClusterDriver) -> ClusterDriver:
        driver.bring_all_up()
        for topic in TOPICS:
            driver.create_topic(topic, [REPLICAS] * (4 if topic == "many" else 1))
            driver.produce(topic, 10)
        driver.kill(1)
        for topic in TOPICS:
            driver.produce(topic, 10)
        driver.kill(2)
        driver.kill(3)
        driver.start(1, 2)
        return driver

    async def test_a_better_log_that_was_silent_and_is_back_makes_the_row_stale(
        self, incident: ClusterDriver
    ) -> None:
        """The first one here: once 2 leads a partition it is not killed for this."""
        record = MemoryRecorder()
        incident.kill(2)
        async with incident.backend() as backend:
            row = await aggressive_choice(backend, "returned")
            incident.start(2)
            (found,) = await designate(backend, [row], record)
            assert (await state(backend, "returned")).offline
        assert (row.leader, row.silent) == (1, (2, 3))
        assert (found.outcome, found.reason) == (Outcome.STALE, Reason.BETTER_LOG)
        assert record.actions == []

    async def test_what_is_offline_says_who_could_lead_it_again(self, incident: ClusterDriver) -> None:
        async with incident.backend() as backend:
            found = await incident.until(
                lambda: state(backend, "stopped"), lambda now: now.offline_replicas == (3,), "1 and 2 alive"
            )
            surveyed = await survey(backend, "stopped")
        assert (found.leader, found.isr, found.elr, found.last_known_elr) == (-1, (), (3,), (3,))
        first, second = surveyed.log(1), surveyed.log(2)
        assert first is not None and second is not None
        assert (first.log_end_offset, second.log_end_offset) == (10, 20)
        assert surveyed.log(3) is None

    async def test_a_leaderless_replica_lets_its_whole_log_be_read(self, incident: ClusterDriver) -> None:
        """Beyond its high watermark too, and several partitions in one answer, the first of them in any case."""
        ends = {TopicPartition("stopped", 0): 20, TopicPartition("last", 0): 20}
        async with incident.backend() as backend:
            whole = await backend.read_batches(2, [LogPosition(tp, 0) for tp in ends], 1 << 20)
            tail = await backend.read_batches(2, [LogPosition(tp, 15) for tp in ends], 1)
            at_end = await backend.read_batches(2, [LogPosition(tp, 20) for tp in ends], 1 << 20)
            beyond = await backend.read_batches(2, [LogPosition(tp, 21) for tp in ends], 1 << 20)
        for tp, end in ends.items():
            assert offsets_of(whole[tp]) == list(range(end))
            assert offsets_of(at_end[tp]) == []
            assert beyond[tp] == Unknown(Why.FAILED, "the log does not hold offset 21")
        assert 15 in offsets_of(tail[next(iter(ends))])

    async def test_the_designated_leader_is_elected_and_the_order_stands_as_before(
        self, incident: ClusterDriver
    ) -> None:
        record = MemoryRecorder()
        async with incident.backend() as backend:
            row = await aggressive_choice(backend, "chosen")
            (found,) = await designate(backend, [row], record)
            now = await incident.until(
                lambda: state(backend, "chosen"), lambda now: now.replicas == REPLICAS, "the order as before"
            )
            (again,) = await designate(backend, [row], record)
        assert (row.leader, row.order[-1]) == (2, 3)
        assert (found.outcome, found.leader, found.reverted) == (Outcome.ELECTED, 2, True)
        assert (now.leader, now.leader_epoch) == (2, found.leader_epoch)
        assert again.outcome is Outcome.ALREADY_ONLINE
        assert "elect" in record.actions and set(record.ends) == {
            str(number) for number in range(1, len(record.actions) + 1)
        }

    async def test_each_row_ends_for_itself_in_the_order_given(self, incident: ClusterDriver) -> None:
        """Partition 0 is right, of 1 the epoch has moved on, of 2 the log, 3 is to be led by a dead broker."""
        async with incident.backend() as backend:
            rows = await choices(backend, "many")
            rows[1] = rows[1]._replace(leader_epoch=rows[1].leader_epoch - 1)
            rows[2] = with_log(rows[2], 2, end=-1)
            rows[3] = rows[3]._replace(order=(3, 2, 1))
            found = await designate(backend, rows[::-1])
            now = await incident.until(
                lambda: states(backend, "many"),
                lambda now: {one.replicas for one in now} == {REPLICAS},
                "every order as before",
            )
        assert [one.tp.partition for one in found] == [3, 2, 1, 0]
        assert [one.outcome for one in found] == [
            Outcome.FAILED,
            Outcome.STALE,
            Outcome.STALE,
            Outcome.ELECTED,
        ]
        assert [one.leader for one in now] == [2, -1, -1, -1]
        assert "3" in found[0].detail

    async def test_what_has_changed_since_is_stale_and_nothing_is_sent(self, incident: ClusterDriver) -> None:
        record = MemoryRecorder()
        async with incident.backend() as backend:
            row = await aggressive_choice(backend, "stale")
            for changed in (
                row._replace(leader_epoch=row.leader_epoch - 1),
                row._replace(topic_id="x" * 22),
                row._replace(replicas=(2, 1, 3)),
                with_log(row, 2, end=-1),
                row._replace(tp=TopicPartition("never-made", 0)),
            ):
                (found,) = await designate(backend, [changed], record)
                assert found.outcome is Outcome.STALE, found
            assert (await state(backend, "stale")).offline
        assert record.actions == []

    async def test_a_dead_broker_is_not_elected_and_nobody_else_in_its_place(
        self, incident: ClusterDriver
    ) -> None:
        record = MemoryRecorder()
        async with incident.backend() as backend:
            (found,) = await designate(backend, [await aggressive_choice(backend, "fenced", 3)], record)
            assert (await state(backend, "fenced")).offline
        assert found.outcome is Outcome.FAILED and found.reverted
        assert record.actions == []

    async def test_what_cannot_be_recorded_is_not_sent(self, incident: ClusterDriver) -> None:
        async with incident.backend() as backend:
            row = await aggressive_choice(backend, "unrecorded")
            (found,) = await designate(backend, [row], MemoryRecorder(full=True))
            with pytest.raises(OSError, match="no space"):
                await backend.elect(False, [row.tp], MemoryRecorder(full=True))
            assert (await state(backend, "unrecorded")).offline
        assert found.outcome is Outcome.FAILED
        assert "no space left on device" in found.detail

    async def test_a_stop_leaves_the_rest_unattempted(self, incident: ClusterDriver) -> None:
        record = MemoryRecorder()
        async with incident.backend() as backend:
            row = await aggressive_choice(backend, "stopped")
            (found,) = await designate(backend, [row], record, stopped=True)
            assert (await state(backend, "stopped")).offline
        assert found.outcome is Outcome.NOT_ATTEMPTED
        assert record.actions == []

    async def test_without_the_permission_nothing_is_elected_and_the_order_stands(
        self, incident: ClusterDriver
    ) -> None:
        async with incident.backend() as backend:
            row = await aggressive_choice(backend, "denied")
        async with incident.backend("ALTER cluster", "CLUSTER_ACTION cluster") as backend:
            (found,) = await designate(backend, [row])
            with pytest.raises(NotAllowed, match="ALTER"):
                await backend.elect(False, [row.tp], MemoryRecorder())
            now = await state(backend, "denied")
        assert (found.outcome, found.reverted) == (Outcome.FAILED, True)
        assert (now.leader, now.replicas) == (-1, REPLICAS)

    async def test_an_unclean_election_takes_the_first_live_replica_in_assignment_order(
        self, incident: ClusterDriver
    ) -> None:
        unclean = TopicPartition("unclean", 0)
        record = MemoryRecorder()
        async with incident.backend() as backend:
            (found,) = await backend.elect(False, [unclean], record)
            (again,) = await backend.elect(False, [unclean], record)
        assert (found.outcome, found.leader) == (Outcome.ELECTED, 1)
        assert (again.outcome, again.leader) == (Outcome.ALREADY_ONLINE, 1)
        assert record.ends["1"]["applied"] == [unclean]

    # What happens between the plan and its election ends the same on every cluster.

    async def test_while_a_reassignment_is_in_progress_the_row_is_stale(
        self, incident: ClusterDriver
    ) -> None:
        record = MemoryRecorder()
        async with incident.backend() as backend:
            row = await aggressive_choice(backend, "being-moved")
            incident.reassign("being-moved", 0, (1, 2))
            (found,) = await designate(backend, [row], record)
        assert (found.outcome, found.reason) == (Outcome.STALE, Reason.REASSIGNMENT)
        assert record.actions == []

    async def test_a_leader_that_somebody_else_elected_is_no_success_of_ours(
        self, incident: ClusterDriver
    ) -> None:
        """The plan has 2; an unclean election takes 1, which lacks the last 10 offsets."""
        record = MemoryRecorder()
        async with incident.backend() as backend:
            row = await aggressive_choice(backend, "taken")
            (theirs,) = await backend.elect(False, [row.tp], MemoryRecorder())
            (found,) = await designate(backend, [row], record)
        assert (row.leader, theirs.leader) == (2, 1)
        assert (found.outcome, found.leader) == (Outcome.OTHER_LEADER, 1)
        assert found.reason is Reason.UNPLANNED_LEADER
        assert (
            found.detail
            == "1 leads, and not 2 as planned; at least 10 offsets of the planned log are cut off"
        )
        assert record.actions == []

    async def test_a_chosen_one_that_hangs_is_tried_again_and_nobody_is_elected_in_its_place(
        self, incident: ClusterDriver
    ) -> None:
        async with incident.backend() as backend:
            row = await aggressive_choice(backend, "stuck")
            incident.pause(2)
            try:
                (found,) = await designate(backend, [row])
            finally:
                incident.resume(2)
            now = await state(backend, "stuck")
        assert row.leader == 2
        assert (found.outcome, found.reverted) == (Outcome.FAILED, True)
        assert found.reason in (Reason.NO_ANSWER, Reason.NOT_ELECTABLE), "it hangs, and is fenced soon"
        assert (now.leader, now.replicas) == (-1, REPLICAS)

    async def test_a_member_of_the_elr_that_was_elected_meanwhile_is_a_success(
        self, incident: ClusterDriver
    ) -> None:
        """The last one here: with 3 every partition has a leader again."""
        record = MemoryRecorder()
        async with incident.backend() as backend:
            row = await aggressive_choice(backend, "last")
            incident.start(3)
            await incident.until(lambda: state(backend, "last"), lambda now: not now.offline, "a leader")
            (found,) = await designate(backend, [row], record)
        assert (row.leader, row.clean_electors) == (2, (3,))
        assert (found.outcome, found.leader) == (Outcome.ALREADY_ONLINE, 3)
        assert found.reason is Reason.CLEAN_LEADER
        assert record.actions == []
