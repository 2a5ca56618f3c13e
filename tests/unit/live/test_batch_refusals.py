"""KAFKA-19522 as a row of a batch meets it. Stood in for: no release that has it runs in the testbed."""

from __future__ import annotations

import asyncio
from unittest.mock import AsyncMock, Mock

from backends.base.answers import ClusterInfo, Designation, Outcome
from backends.live.elections.election_batch import Batch
from recovery.model import Broker, PartitionState

STATE = PartitionState("t", 0, "id", -1, 7, (1, 2, 3), (), (), (3,), (3,))
ROW = Designation(STATE.tp, "id", 7, (1, 2, 3), (2, 1, 3), {1: (0, 5), 2: (1, 4)})


def test_an_election_that_a_dead_last_known_leader_blocks_is_refused_and_nothing_is_sent() -> None:
    older, recorder = AsyncMock(), Mock()
    brokers = tuple(Broker(number, "", 0, None, number == 3) for number in (1, 2, 3))
    older.cluster.return_value = ClusterInfo("id", brokers, 1, True)
    older.states.return_value = {STATE.tp: STATE}
    older.reassigning.return_value = frozenset()
    older.changed_logs.return_value = {}
    older.blocks_on_dead_last_known_leader.return_value = True
    batch = Batch(older, [ROW], recorder)
    election = asyncio.run(batch.run())[ROW.tp]
    assert (election.outcome, election.restored) == (Outcome.FAILED, True)
    assert "KAFKA-19522" in election.detail and "bring 3 back" in election.detail
    assert batch.passing == set()
    for sends in (recorder.before, older.write_orders, older.elect):
        sends.assert_not_called()
