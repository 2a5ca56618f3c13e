"""What a caller is told who may not do everything: which permission is missing, and nothing in its place."""

from __future__ import annotations

import pytest

from backends.base.answers import RIGHTS_UNKNOWN, LogPosition, SurveyRequest
from backends.base.errors import NotAllowed
from recovery.loss import Witness
from recovery.model import Lineage, TopicPartition, Unknown, Why
from tests.contract.backend_requests import MemoryRecorder, aggressive_choice, offsets_of, state, survey
from tests.contract.cluster_driver import BROKERS, ClusterDriver

OPEN, CLOSED = TopicPartition("open", 0), TopicPartition("closed", 0)


class MissingPermissionTests:
    """``open`` and ``closed`` are healthy; ``offline`` waits for its only replica."""

    @pytest.fixture(scope="class")
    @classmethod
    def guarded(cls, driver: ClusterDriver) -> ClusterDriver:
        driver.bring_all_up()
        for topic in ("open", "closed"):
            driver.create_topic(topic, [[1, 2]], {"min.insync.replicas": "2"})
            driver.produce(topic, 10)
        return driver

    async def test_without_describe_a_topic_is_hidden_and_said_to_be(self, guarded: ClusterDriver) -> None:
        async with guarded.backend("DESCRIBE topic closed", "READ topic closed") as backend:
            named = await backend.partitions(["open", "closed"])
            everything = await backend.partitions()
        for found in (named, everything):
            assert {one.topic for one in found.states} & {"open", "closed"} == {"open"}
            assert found.hidden == ("closed",)
            why = found.unknown[TopicPartition("closed", -1)]
            assert why.why is Why.NOT_ALLOWED and "DESCRIBE" in why.detail and "closed" in why.detail

    async def test_without_describe_on_a_topic_its_logs_are_not_told(self, guarded: ClusterDriver) -> None:
        async with guarded.backend() as backend:
            states = (await backend.partitions(["closed", "open"])).states
        async with guarded.backend("DESCRIBE topic closed", "READ topic closed") as backend:
            result = await backend.survey(SurveyRequest(states, 20.0))
        closed, opened = result.surveys
        assert [one.state.topic for one in result.surveys] == ["closed", "open"]
        for replica in closed.replicas:
            assert isinstance(replica.log, Unknown)
            assert replica.log.why is Why.NOT_ALLOWED
        assert opened.log(1) is not None and opened.log(2) is not None

    async def test_without_read_the_end_is_known_and_the_epochs_are_not(self, guarded: ClusterDriver) -> None:
        async with guarded.backend("READ topic closed") as backend:
            found = await survey(backend, "closed")
            opened = await survey(backend, "open")
            times = await backend.record_times([(OPEN, Witness(1, 3)), (CLOSED, Witness(1, 3))])
            read = await backend.read_batches(1, [LogPosition(CLOSED, 0), LogPosition(OPEN, 0)], 1 << 20)
        refused = read[CLOSED]
        assert isinstance(refused, Unknown) and refused.why is Why.NOT_ALLOWED and "READ" in refused.detail
        assert offsets_of(read[OPEN]) == list(range(10))
        for broker in (1, 2):
            log = found.log(broker)
            assert log is not None and log.log_end_offset == 10
            assert isinstance(log.lineage, Unknown)
            assert log.lineage.why is Why.NOT_ALLOWED and "READ on topic closed" in log.lineage.detail
            complete = opened.log(broker)
            assert complete is not None and isinstance(complete.lineage, Lineage)
        assert times.keys() == {(OPEN, Witness(1, 3))}

    async def test_without_describe_configs_the_min_isr_is_not_known(self, guarded: ClusterDriver) -> None:
        async with guarded.backend("DESCRIBE_CONFIGS topic closed") as backend:
            configs = await backend.topic_configs(["open", "closed"])
            found = await survey(backend, "closed")
        closed = configs["closed"]
        assert isinstance(closed, Unknown) and closed.why is Why.NOT_ALLOWED
        assert "DESCRIBE_CONFIGS" in closed.detail
        assert not isinstance(configs["open"], Unknown)
        assert isinstance(found.min_isr, Unknown) and found.min_isr.why is Why.NOT_ALLOWED
        assert found.log(1) is not None

    async def test_without_describe_on_the_cluster_each_answer_says_so(self, guarded: ClusterDriver) -> None:
        async with guarded.backend("DESCRIBE cluster") as backend:
            quorum = await backend.quorum()
            reassignments = await backend.reassignments()
            dirs = await backend.log_dirs()
            found = await survey(backend, "open")
            everything = await backend.partitions()
        for answer in (quorum, reassignments, *dirs.values()):
            assert isinstance(answer, Unknown)
            assert answer.why is Why.NOT_ALLOWED and "DESCRIBE" in answer.detail
        assert dirs.keys() == set(BROKERS)
        assert isinstance(found.reassigning, Unknown) and found.log(1) is not None
        assert isinstance(everything.not_compared, Unknown)

    async def test_the_caller_learns_whether_it_may_alter_the_cluster(self, guarded: ClusterDriver) -> None:
        may_alter = []
        for denied in ((), ("ALTER cluster",), ("DESCRIBE cluster",)):
            async with guarded.backend(*denied) as backend:
                may_alter.append((await backend.cluster()).may_alter)
        assert may_alter == [True, False, RIGHTS_UNKNOWN]

    async def test_without_alter_no_election_is_held(self, guarded: ClusterDriver) -> None:
        record = MemoryRecorder()
        async with guarded.backend("ALTER cluster") as backend:
            with pytest.raises(NotAllowed, match="ALTER"):
                await backend.elect(True, [OPEN], record)
            assert (await state(backend, "open")).leader == 1
        assert record.actions == ["elect"] and record.ends.keys() == {"1"}

    async def test_without_alter_an_order_that_was_written_stays_and_is_said_to_stay(
        self, guarded: ClusterDriver
    ) -> None:
        guarded.create_topic("written", [[1, 2]])
        async with guarded.backend() as backend:
            row = await aggressive_choice(backend, "written", 2)
        guarded.reassign("written", 0, row.order)
        async with guarded.backend("ALTER cluster") as backend:
            (found,) = await backend.revert_orders([row.written_order], MemoryRecorder())
            assert (await state(backend, "written")).replicas == (2, 1)
        assert not found.reverted and "ALTER" in found.detail
