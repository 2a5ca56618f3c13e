"""The results of a batch's rows, and a loop that reads rows until they are settled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from backends.base.answers import Election, Outcome
from recovery.model import NO_LEADER, PartitionState, TopicPartition, Unknown
from recovery.plan.judgement import Judgement
from recovery.plan.values import PlanRow
from recovery.requests_in_doubt import ELECTION_ALIVE_FOR


class Named(Protocol):
    """A row of a partition."""

    @property
    def tp(self) -> TopicPartition: ...


IN_DOUBT = f"the election was not answered and may still be carried out for up to {ELECTION_ALIVE_FOR:g} s"

N = TypeVar("N", bound=Named)
State = PartitionState | Unknown | None
"""What was read of a partition; None: its topic does not exist."""


class RowResults:
    """``elections``: the result of each row that is finished. ``retryable``: those with a temporary failure."""

    def __init__(self) -> None:
        self.elections: dict[TopicPartition, Election] = {}
        self.retryable: set[TopicPartition] = set()

    def __contains__(self, tp: TopicPartition) -> bool:
        return tp in self.elections

    def end(self, row: PlanRow, outcome: Outcome, found: Judgement, state: PartitionState | None) -> None:
        """The row is finished as it was judged."""
        leader, epoch = (state.leader, state.leader_epoch) if state else (NO_LEADER, -1)
        self.elections[row.tp] = Election(row.tp, outcome, leader, epoch, found.detail, reason=found.reason)

    def fail(self, row: PlanRow, detail: str, *, retryable: bool = False) -> None:
        """The row failed, unless it is finished already."""
        if row.tp in self.elections:
            return
        self.elections[row.tp] = Election(row.tp, Outcome.FAILED, NO_LEADER, -1, detail)
        if retryable:
            self.retryable.add(row.tp)

    def lost_again(self, row: PlanRow, state: PartitionState) -> None:
        """Somebody led after our election was sent, most likely by it, and nobody leads any more."""
        epochs = f"the leader epoch is {state.leader_epoch}, was {row.leader_epoch}"
        self.fail(row, f"a leader was elected after our election was sent, and nobody leads now: {epochs}")

    def order_stays(self, row: PlanRow) -> None:
        """The order of the plan is left, because an election that needs it may still be carried out."""
        self.not_reverted(row, f"{IN_DOUBT}: broker {row.leader} stays first in the assignment until then")
        self.elections[row.tp] = self.elections[row.tp]._replace(in_doubt=True)

    def may_come(self, row: PlanRow) -> None:
        """No order of ours stands, but the election may still be carried out."""
        self.elections[row.tp] = self._with(row, IN_DOUBT)._replace(in_doubt=True)

    def not_reverted(self, row: PlanRow, what: str) -> None:
        """The original order of the row may not stand at the end."""
        self.elections[row.tp] = self._with(row, what)._replace(reverted=False)

    def _with(self, row: PlanRow, what: str) -> Election:
        ended = self.elections.get(row.tp) or Election(row.tp, Outcome.FAILED, NO_LEADER, -1, "")
        return ended._replace(detail="; ".join(filter(None, (ended.detail, what))))


async def read_until_settled(
    read: Callable[[Sequence[TopicPartition]], Awaitable[Mapping[TopicPartition, PartitionState | Unknown]]],
    rows: Sequence[N],
    seconds: float,
    settled: Callable[[N, State], bool],
) -> list[N]:
    """Reads the rows repeatedly until they are ``settled``; returns those that are not settled within ``seconds``.
    At least one reading is made.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    waiting, pause = list(rows), 0.02
    while waiting:
        states = await read([row.tp for row in waiting])
        waiting = [row for row in waiting if not settled(row, states.get(row.tp))]
        if not waiting or loop.time() >= deadline:
            break
        await asyncio.sleep(pause)
        pause = min(pause * 2, 0.5)
    return waiting
