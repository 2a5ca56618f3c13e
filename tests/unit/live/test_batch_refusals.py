"""KAFKA-19522 as a row of a batch meets it. Stood in for: no release that has it runs in the testbed."""

from __future__ import annotations

import asyncio
from unittest.mock import AsyncMock, Mock

from backends.base.answers import ClusterInfo, Outcome
from backends.live.elections.election_batch import ElectionBatch
from backends.live.elections.sent_elections import SentElections
from recovery.model import Broker, PartitionState
from recovery.plan.judgement import Reason
from recovery.ranking import Ranking
from tests.plan_rows import row
from tests.unit.live.one_partition import replica_log

STATE = PartitionState("t", 0, "id", -1, 7, (1, 2, 3), (), (), (3,), (3,))
ROW = row(STATE, (2, 1, 3), {1: (0, 5), 2: (1, 4)})


def test_an_election_that_a_dead_last_known_leader_blocks_is_refused_and_nothing_is_sent() -> None:
    older, recorder = AsyncMock(), Mock()
    brokers = tuple(Broker(number, "", 0, None, number == 3) for number in (1, 2, 3))
    older.cluster.return_value = ClusterInfo("id", brokers, 1, True)
    older.states.return_value = {STATE.tp: STATE}
    older.reassigning.return_value = frozenset()
    older.logs.return_value = {STATE.tp: {1: replica_log(0, 5), 2: replica_log(1, 4)}}
    older.connection = Mock()
    older.blocks_on_dead_last_known_leader.return_value = True
    batch = ElectionBatch(older, [ROW], Ranking.LAST_RECORD, SentElections(recorder))
    election = asyncio.run(batch.run())[ROW.tp]
    assert (election.outcome, election.reverted) == (Outcome.FAILED, True)
    assert election.reason is Reason.LAST_KNOWN_LEADER
    assert "KAFKA-19522" in election.detail and "bring 3 back" in election.detail
    assert batch.retryable == set()
    for sends in (recorder.before, older.write_orders, older.elect):
        sends.assert_not_called()
