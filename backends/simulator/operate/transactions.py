"""Transactions of a simulated cluster: its clients do not use any."""

# ruff: noqa: ARG002  # the signatures are the protocol's

from __future__ import annotations

from collections.abc import Mapping, Sequence

from backends.base.transactions import LEADERLESS, CoordinatorAnswers
from recovery.model import NO_LEADER, UNKNOWN_OFFSET, TopicPartition, Unknown, Why
from recovery.transactions.transaction_values import PartitionTransactions

NO_TRANSACTIONS = Unknown(Why.NOT_OFFERED, "a simulated cluster has no transactions")


class SimulatedTransactions:
    """Implements :class:`backends.base.transactions.Transactions`."""

    async def open_in(
        self, leaders: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, PartitionTransactions | Unknown]:
        """No producer of a scenario opens one."""
        return {
            tp: LEADERLESS
            if leader == NO_LEADER
            else PartitionTransactions(leader, (), UNKNOWN_OFFSET, UNKNOWN_OFFSET)
            for tp, leader in leaders.items()
        }

    async def coordinated(self, producers: Sequence[int]) -> CoordinatorAnswers:
        return CoordinatorAnswers({}, (NO_TRANSACTIONS,))
