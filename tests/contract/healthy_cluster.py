"""What a backend answers at a cluster where nothing is wrong."""

from __future__ import annotations

import pytest

from backends.base.answers import Depth, Outcome, SurveyRequest
from backends.base.errors import BackendError
from backends.base.simulated_clusters import is_simulated
from recovery.loss import Witness
from recovery.model import EpochSpan, Lineage, Standing, TopicPartition, Unknown, Why
from tests.contract.backend_requests import MemoryRecorder, aggressive_choice, designate, state, survey
from tests.contract.cluster_driver import BROKERS, ClusterDriver

MIN_ISR_2 = {"min.insync.replicas": "2"}
DEEP = TopicPartition("deep", 0)


class HealthyClusterTests:
    """Every broker runs."""

    @pytest.fixture(scope="class")
    @classmethod
    def healthy(cls, driver: ClusterDriver) -> ClusterDriver:
        driver.bring_all_up()
        return driver

    @pytest.fixture(scope="class")
    @classmethod
    def deep(cls, healthy: ClusterDriver) -> ClusterDriver:
        """``deep``, whose logs have three epochs, the first of which is deleted in part."""
        healthy.create_topic("deep", [[2, 3]], {"min.insync.replicas": "1"})
        healthy.produce("deep", 40)
        for broker in (2, 3):
            healthy.shut_down(broker)
            healthy.start(broker)
            healthy.produce("deep", 30)
        healthy.delete_records("deep", 10)
        return healthy

    async def test_it_says_what_it_is_and_which_cluster(self, healthy: ClusterDriver) -> None:
        async with healthy.backend() as backend:
            assert backend.title
            found = await backend.cluster()
            assert [broker.id for broker in found.brokers] == list(BROKERS)
            assert [broker.fenced for broker in found.brokers] == [False, False, False]
            assert all(broker.host and broker.port > 0 for broker in found.brokers)
            assert found.asked in BROKERS
            assert found.elr_enabled is True
            assert found.cluster_id == (await backend.open()).cluster_id
            assert backend.simulated == is_simulated(found.cluster_id)

    async def test_it_may_be_closed_twice_and_then_nothing_is_asked(self, healthy: ClusterDriver) -> None:
        async with healthy.backend() as backend:
            await backend.close()
            await backend.close()
            with pytest.raises(BackendError):
                await backend.cluster()

    async def test_it_tells_how_logs_are_asked_for_and_elections_made(self, healthy: ClusterDriver) -> None:
        async with healthy.backend() as backend:
            found = await backend.capabilities()
        assert found.features["eligible.leader.replicas.version"] == 1
        assert "native" in found.replica_logs or "emulated" in found.replica_logs
        assert isinstance(found.designated_elections, str)
        offered = {call.call: call.versions for call in found.calls}
        for call in ("DescribeCluster", "DescribeTopicPartitions", "AlterPartitionReassignments"):
            versions = offered[call]
            assert not isinstance(versions, Unknown)
            assert versions[0] <= versions[1]

    async def test_partitions_are_told_with_isr_elr_and_epochs(self, healthy: ClusterDriver) -> None:
        healthy.create_topic("told", [[1, 2, 3], [3, 1, 2]], MIN_ISR_2)
        async with healthy.backend() as backend:
            named = await backend.partitions(["told"])
            everything = await backend.partitions()
        first, second = named.states
        assert (first.leader, first.leader_epoch, first.replicas) == (1, 0, (1, 2, 3))
        assert (second.leader, second.replicas, set(second.isr)) == (3, (3, 1, 2), {1, 2, 3})
        assert (first.elr, first.last_known_elr, first.offline_replicas) == ((), (), ())
        assert len(first.topic_id) == 22 and first.topic_id == second.topic_id
        assert (named.unknown, named.hidden, named.visible_only) == ({}, (), False)
        assert {one for one in everything.states if one.topic == "told"} == {first, second}
        assert everything.visible_only and everything.not_compared is None

    async def test_a_topic_that_does_not_exist_is_unknown_and_hides_nothing(
        self, healthy: ClusterDriver
    ) -> None:
        healthy.create_topic("exists", [[1]])
        async with healthy.backend() as backend:
            found = await backend.partitions(["nobody", "exists"])
            configs = await backend.topic_configs(["nobody", "exists"])
        assert [one.topic for one in found.states] == ["exists"]
        assert found.hidden == ()
        assert found.unknown.keys() == {TopicPartition("nobody", -1)}
        assert found.unknown[TopicPartition("nobody", -1)].why is Why.FAILED
        missing = configs["nobody"]
        assert isinstance(missing, Unknown) and missing.why is Why.FAILED
        assert not isinstance(configs["exists"], Unknown)

    async def test_configurations_are_the_effective_ones(self, healthy: ClusterDriver) -> None:
        healthy.create_topic("own", [[1, 2]], MIN_ISR_2)
        healthy.create_topic("default", [[1, 2]])
        async with healthy.backend() as backend:
            configs = await backend.topic_configs(["own", "default"])
            assert await backend.topic_configs([]) == {}
        own, default = configs["own"], configs["default"]
        assert not isinstance(own, Unknown) and not isinstance(default, Unknown)
        assert (own["min.insync.replicas"], default["min.insync.replicas"]) == ("2", "1")
        assert own["cleanup.policy"] == "delete"
        assert own["remote.storage.enable"] == own["unclean.leader.election.enable"] == "false"

    async def test_no_reassignment_is_in_progress(self, healthy: ClusterDriver) -> None:
        async with healthy.backend() as backend:
            assert await backend.reassignments() == ()
            assert await backend.reassignments([TopicPartition("told", 0)]) == ()

    async def test_the_quorum_has_a_leader_that_is_a_voter(self, healthy: ClusterDriver) -> None:
        async with healthy.backend() as backend:
            found = await backend.quorum()
        assert not isinstance(found, Unknown)
        assert found.leader in found.voters.keys
        assert found.leader_epoch > 0 and found.high_watermark
        assert set(BROKERS) <= {replica.key.id for replica in found.observer_progress}

    async def test_log_dirs_hold_each_replica_once(self, healthy: ClusterDriver) -> None:
        healthy.create_topic("placed", [[1, 2], [2, 1]])
        healthy.produce("placed", 20)
        async with healthy.backend() as backend:
            found = await backend.log_dirs()
            assert (await backend.log_dirs([2])).keys() == {2}
        assert found.keys() == set(BROKERS)
        for broker in (1, 2):
            dirs = found[broker]
            assert not isinstance(dirs, Unknown)
            assert len({one.path for one in dirs}) == 2
            assert all((one.broker, one.error) == (broker, None) for one in dirs)
            assert all(one.total_bytes >= one.usable_bytes > 0 for one in dirs)
            replicas = [one for log_dir in dirs for one in log_dir.replicas if one.tp.topic == "placed"]
            assert sorted(one.tp.partition for one in replicas) == [0, 1]
            assert {one.tp.partition: one.size > 0 for one in replicas} == {0: True, 1: False}
            assert not any(one.future for one in replicas)

    @pytest.mark.parametrize("depth", Depth)
    async def test_a_survey_tells_every_log_as_deep_as_it_was_asked(
        self, deep: ClusterDriver, depth: Depth
    ) -> None:
        async with deep.backend() as backend:
            found = await survey(backend, "deep", depth)
            dirs = await backend.log_dirs()
        assert (found.min_isr, found.reassigning) == (1, False)
        newest = found.state.leader_epoch
        for replica in found.replicas:
            log = found.log(replica.broker)
            assert replica.standing is Standing.ELECTABLE
            assert log is not None and isinstance(log.lineage, Lineage)
            assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (10, 100, 100)
            assert log.leader_epoch == newest
            assert log.lineage.spans[-1].end == 100 and log.lineage.last_epoch == log.lineage.spans[-1].epoch
            log_dirs = dirs[replica.broker]
            assert not isinstance(log_dirs, Unknown)
            assert log.log_dir in {one.path for one in log_dirs} and log.size > 0
            if depth is Depth.FULL:
                first, *rest = log.lineage.spans
                assert log.lineage.floor == 10
                assert first == EpochSpan(0, 10, 40)
                assert [(span.start, span.end) for span in rest] == [(40, 70), (70, 100)]

    async def test_of_a_led_partition_the_leader_alone_is_asked_where_that_is_wanted(
        self, deep: ClusterDriver
    ) -> None:
        async with deep.backend() as backend:
            states = (await backend.partitions(["deep"])).states
            result = await backend.survey(SurveyRequest(states, 20.0, leaders_only=True))
        (found,) = result.surveys
        follower = ({2, 3} - {found.state.leader}).pop()
        assert found.log(found.state.leader) is not None and found.log(follower) is None
        assert result.contact(follower) is None
        asked = result.contact(found.state.leader)
        assert asked is not None and asked.problem is None and asked.call

    async def test_nothing_asked_is_nothing_told(self, healthy: ClusterDriver) -> None:
        async with healthy.backend() as backend:
            result = await backend.survey(SurveyRequest((), 5.0))
            assert (result.surveys, result.contacts) == ((), ())
            assert await designate(backend, []) == ()
            assert await backend.revert_orders([], MemoryRecorder()) == ()
            assert await backend.record_times([]) == {}

    async def test_records_have_the_time_of_their_batch_and_what_is_not_there_is_left_out(
        self, deep: ClusterDriver
    ) -> None:
        old, new, gone, beyond = (Witness(2, offset) for offset in (15, 99, 5, 100))
        async with deep.backend() as backend:
            found = await backend.record_times([(DEEP, one) for one in (old, new, gone, beyond)])
        assert found.keys() == {(DEEP, old), (DEEP, new)}
        first, newest = found[DEEP, old]
        assert 0 < first <= newest < found[DEEP, new][0]

    async def test_a_preferred_election_brings_the_first_replica_back(self, healthy: ClusterDriver) -> None:
        healthy.create_topic("preferred", [[1, 2]])
        healthy.create_topic("in-place", [[2, 1]])
        healthy.shut_down(1)
        healthy.start(1)
        moved, still = TopicPartition("preferred", 0), TopicPartition("in-place", 0)
        record = MemoryRecorder()
        async with healthy.backend() as backend:
            await healthy.until(
                lambda: state(backend, "preferred"), lambda now: set(now.isr) == {1, 2}, "1 to be in sync"
            )
            found = {one.tp: one for one in await backend.elect(True, [moved, still], record)}
            assert (await state(backend, "preferred")).leader == 1
        assert (found[moved].outcome, found[moved].leader) == (Outcome.ELECTED, 1)
        assert (found[still].outcome, found[still].leader) == (Outcome.ALREADY_ONLINE, 2)
        assert record.actions == ["elect"]
        assert record.ends["1"]["applied"] == [moved]

    async def test_an_election_of_all_names_only_those_that_were_held(self, healthy: ClusterDriver) -> None:
        async with healthy.backend() as backend:
            await backend.elect(True, None, MemoryRecorder())
            assert await backend.elect(True, None, MemoryRecorder()) == ()

    async def test_what_has_a_leader_is_not_elected_and_nothing_is_sent(self, healthy: ClusterDriver) -> None:
        healthy.create_topic("led", [[1, 2, 3]])
        record = MemoryRecorder()
        async with healthy.backend() as backend:
            (found,) = await designate(backend, [await aggressive_choice(backend, "led", 2)], record)
        assert (found.outcome, found.leader, found.reverted) == (Outcome.ALREADY_ONLINE, 1, True)
        assert record.actions == []

    async def test_an_order_of_ours_is_put_back_and_any_other_is_left_alone(
        self, healthy: ClusterDriver
    ) -> None:
        for topic in ("ours", "theirs", "untouched"):
            healthy.create_topic(topic, [[1, 2, 3]])
        record = MemoryRecorder()
        async with healthy.backend() as backend:
            rows = [await aggressive_choice(backend, topic, 2) for topic in ("ours", "theirs", "untouched")]
            healthy.reassign("ours", 0, rows[0].order)
            healthy.reassign("theirs", 0, (3, 2, 1))
            found = await backend.revert_orders([row.written_order for row in rows], record)
            await healthy.until(
                lambda: state(backend, "ours"), lambda now: now.replicas == (1, 2, 3), "1, 2, 3"
            )
            others = [(await state(backend, topic)).replicas for topic in ("theirs", "untouched")]
        assert others == [(3, 2, 1), (1, 2, 3)]
        assert [one.reverted for one in found] == [True, False, True]
        assert "left alone" in found[1].detail
        assert record.actions == ["revert"]
