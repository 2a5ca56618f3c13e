"""What a simulated leader takes of a transactional producer."""

from __future__ import annotations

from backends.base.transactions import Marker
from backends.simulator.broker.broker_access import append_batch
from backends.simulator.broker.led_transactions import append_marker, hosted_partition
from backends.simulator.loop import SECOND
from backends.simulator.messages import Error, ProduceReply
from backends.simulator.record_batches import ProducedBatch
from backends.simulator.scenario.files import read
from backends.simulator.simulation import Simulation
from recovery.model import TopicPartition

REFUNDS = TopicPartition("refunds", 0)


def test_no_batch_of_an_older_epoch_than_the_logs_markers_is_taken() -> None:
    """Its coordinator may have forgotten the newer epoch, in an unclean election of __transaction_state."""
    simulation = Simulation(read("hanging-transactions"), 1)
    simulation.advance_to(3 * SECOND)
    leader = simulation.world.brokers[1]
    context = simulation.world.context
    errors: list[Error | None] = []
    append_marker(context, leader, Marker(REFUNDS, 7, 5, False, 0), errors.append)
    simulation.advance_to(4 * SECOND)
    assert errors == [None]
    replies: list[ProduceReply] = []
    batch = ProducedBatch(bytes(100), 3, 7, 4, 0, transactional=True)
    append_batch(context, leader, REFUNDS, batch, acks=1, answer=replies.append)
    assert [reply.error for reply in replies] == [Error.INVALID_PRODUCER_EPOCH]
    append_batch(context, leader, REFUNDS, batch._replace(producer_epoch=5), acks=1, answer=replies.append)
    assert replies[-1].error is None
    (known,) = (one for one in hosted_partition(context, leader, REFUNDS).producers if one.producer_id == 7)
    assert (known.epoch, known.start_offset) == (5, replies[-1].offset), "its transaction is open now"
