"""One batch of designated elections: judged, reordered, elected, read back, reverted."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from backends.base.answers import Election, Outcome
from backends.base.errors import BackendError
from backends.live.calls.partition_errors import PartitionRefusal
from backends.live.elections.election_api import ElectionApi
from backends.live.elections.journal_entries import (
    answered,
    failed,
    may_pass,
    not_sent,
    record,
    surely_not_done,
)
from backends.live.elections.order_revert import revert_assignments
from backends.live.elections.row_results import RowResults, State, read_until_settled
from backends.live.elections.row_survey import RowSurvey, with_state
from backends.live.elections.sent_elections import (
    ORDER_IN_DOUBT,
    ORDER_VISIBLE_WITHIN,
    SentElections,
    UnansweredWrite,
    end_reorder,
)
from recovery.assignment_order import needs_reorder
from recovery.model import Survey, TopicPartition, Unknown
from recovery.plan.judgement import (
    ElectionMeans,
    Reason,
    RowDecision,
    judge,
    judge_leader,
)
from recovery.plan.values import PlanRow
from recovery.ranking import Ranking
from recovery.requests_in_doubt import ELECT, REORDER

READ_BACK_FOR = 10.0
"""Seconds in which a caught-up broker must show the election; the controller needs some milliseconds."""

CANCELLED_READ_BACK_FOR = 3.0
"""The same for an election that was in flight when the batch was cancelled."""


class ElectionBatch:
    """At most 1,000 rows."""

    native = False
    """Whether the cluster elects the designated leaders itself: then the assignment order does not matter."""

    def __init__(
        self,
        api: ElectionApi,
        rows: Sequence[PlanRow],
        ranking: Ranking,
        sent: SentElections,
    ) -> None:
        """``sent`` records what is sent, over all attempts at these rows."""
        self.rows = tuple(rows)
        self._sent = sent
        self._api = api
        self._survey = RowSurvey(api)
        self._ranking = ranking
        self._means = ElectionMeans(by_order=not self.native)
        self._results = RowResults()
        self._surveys: dict[TopicPartition, Survey] = {}
        self._why_in_doubt: dict[TopicPartition, str] = {}
        self._read_back_done = False
        # The orders to revert, by partition.
        self._written = {row.tp: row for row in self.rows if self._sent.may_have_written(row.tp)}
        # The rows that are elected by our order: it is written now, or stands from an earlier attempt.
        self._by_our_order: set[TopicPartition] = set()
        self._unanswered: UnansweredWrite | None = None

    async def run(self) -> Mapping[TopicPartition, Election]:
        """One result per row. In every case each written order is reverted, unless one of our elections may
        still be carried out and needs it. Raises only CancelledError, and only after reverting was tried; one
        cancellation during the revert does not stop it.
        """
        try:
            ready = await self._judged()
            await self._reorder([row for row in ready if self._must_reorder(row)])
            await self._elect([row for row in ready if row.tp not in self._results])
            await self._read_back([row for row in ready if row.tp not in self._results])
        except BackendError as error:
            for row in self.rows:
                self._results.fail(row, str(error), retryable=may_pass(error))
        finally:
            if self._written:
                await _to_the_end(self._undo())
            self._say_what_may_come()
        return self._results.elections

    @property
    def retryable(self) -> set[TopicPartition]:
        """The rows with a temporary failure."""
        return self._results.retryable

    # Judge.

    async def _judged(self) -> list[PlanRow]:
        """The rows whose elections may be sent; the others are ended."""
        surveys, blocks = await asyncio.gather(
            self._survey.of(self.rows), self._api.blocks_on_dead_last_known_leader()
        )
        self._means = self._means._replace(blocks_on_last_known=blocks)
        reads = ((row, surveys[row.tp]) for row in self.rows)
        stands = [row.tp for row, now in reads if isinstance(now, Survey) and now.state.replicas == row.order]
        self._sent.note_late_orders(stands)
        for row in self.rows:
            self._judge(row, surveys[row.tp], order_is_ours=self._sent.may_have_written(row.tp))
        self._by_our_order.update(stands)
        return [row for row in self.rows if row.tp not in self._results]

    def _judge(self, row: PlanRow, now: Survey | Unknown | None, *, order_is_ours: bool) -> None:
        """Finishes a row whose election must not be sent; keeps the survey of the others."""
        if isinstance(now, Survey):
            self._surveys[row.tp] = now
        found = judge(row, self._ranking, now, self._means, order_is_ours=order_is_ours)
        state = now.state if isinstance(now, Survey) else None
        if found.decision is RowDecision.SEND:
            return
        if state and found.reason is Reason.LEADER_EPOCH and row.tp in self._sent.asked:
            self._results.lost_again(row, state)
        elif found.decision is RowDecision.STALE:
            self._results.end(row, Outcome.STALE, found, state)
        elif isinstance(now, Survey) and not now.state.offline:
            self._led(row, now)
        else:
            self._results.end(row, Outcome.FAILED, found, None)
            if found.decision is RowDecision.TRY_AGAIN:
                self._results.retryable.add(row.tp)

    def _must_reorder(self, row: PlanRow) -> bool:
        survey = self._surveys[row.tp]
        standings = {replica.broker: replica.standing for replica in survey.replicas}
        return not self.native and needs_reorder(survey.state.replicas, row.order, standings)

    # Reorder.

    async def _reorder(self, rows: Sequence[PlanRow]) -> None:
        """Writes the orders; which orders must be reverted is remembered even if this is cancelled."""
        if not rows:
            return
        written = [row.written_order for row in rows]
        entry = record(self._sent, REORDER, written)
        self._written.update((row.tp, row) for row in rows)
        self._by_our_order.update(row.tp for row in rows)
        try:
            answers = await self._api.write_orders({row.tp: row.order for row in rows})
        except BackendError as error:
            if surely_not_done(error):
                self._sent.after(entry, failed(rows, error))
                self._not_written(rows)
            else:
                self._sent.asked.update(row.tp for row in rows)
                self._unanswered = UnansweredWrite(entry, written, error)
            raise
        except BaseException:
            self._sent.asked.update(row.tp for row in rows)
            self._unanswered = UnansweredWrite(entry, written, BackendError("stopped before its answer"))
            raise
        reported = {row.tp: answers.get(row.tp) for row in rows}
        self._sent.after(entry, answered(reported))
        for row in rows:
            answer = reported[row.tp]
            if answer is not None:
                self._not_written([row])
                self._results.fail(
                    row, f"the assignment could not be reordered: {answer}", retryable=answer.retryable
                )
        self._sent.asked.update(self._written)

    def _not_written(self, rows: Sequence[PlanRow]) -> None:
        """This attempt's order does not stand; one of an earlier attempt may."""
        for row in rows:
            if not self._sent.may_have_written(row.tp):
                del self._written[row.tp]

    # Elect.

    async def _elect(self, rows: Sequence[PlanRow]) -> None:
        """Writes the journal line, then reads the state for the last time, and sends the election at once."""
        if not rows:
            return
        entry = record(self._sent, ELECT, [row.written_order for row in rows])
        try:
            ready = await self._final_check(rows)
        except BaseException as error:
            self._sent.after(entry, not_sent(rows, str(error) or "stopped"))
            raise
        left = [row for row in rows if row.tp in self._results]
        if not ready:
            self._sent.after(entry, not_sent(left, "see its end"))
            return
        self._doubt(ready, "stopped before its answer")
        try:
            answers = await self._send_election(ready)
        except BackendError as error:
            if surely_not_done(error):
                self._no_doubt(ready)
                self._sent.after(entry, not_sent(rows, str(error)))
                raise
            self._sent.after(entry, {**not_sent(left, "see its end"), **failed(ready, error)})
            self._doubt(ready, str(error))
            return
        reported = {row.tp: answers.get(row.tp) for row in ready}
        self._sent.after(entry, answered(reported, [row.tp for row in left]))
        for row in ready:
            answer = reported[row.tp]
            if answer is not None and answer.doubtful:
                self._doubt([row], str(answer))
                continue
            self._no_doubt([row])
            if answer is None:
                self._sent.asked.add(row.tp)
            elif not answer.not_needed:
                self._results.fail(row, f"not elected: {answer}", retryable=answer.retryable)

    def _doubt(self, rows: Sequence[PlanRow], why: str) -> None:
        for row in rows:
            self._sent.asked.add(row.tp)
            self._why_in_doubt[row.tp] = why

    def _no_doubt(self, rows: Sequence[PlanRow]) -> None:
        """The election of this attempt is not in doubt; one of an earlier attempt may still be."""
        for row in rows:
            self._why_in_doubt.pop(row.tp, None)

    async def _final_check(self, rows: Sequence[PlanRow]) -> list[PlanRow]:
        """The rows that are still as they were judged, and whose assignment is in the order that the election
        needs. The state of all rows is read once more, as the last step. A log is read again only if the
        connection that carried its answer is closed, because its broker may then have restarted.
        """
        rows = await self._asked_again(rows)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + ORDER_VISIBLE_WITHIN
        pause = 0.02
        while True:
            rows = [row for row in rows if row.tp not in self._results]
            states = await self._api.states([row.tp for row in rows]) if rows else {}
            waiting = [row for row in rows if self._awaits_order(row, states.get(row.tp))]
            if not waiting or loop.time() >= deadline:
                break
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.5)
        for row in waiting:
            what = "the order that was written is not seen to stand: a broker is behind, or another run put it back"
            self._results.fail(row, what, retryable=True)
        for row in rows:
            if self._survey.reconnected(row.leader):
                self._results.fail(
                    row,
                    f"the connection to broker {row.leader} broke right before the election",
                    retryable=True,
                )
        return [row for row in rows if row.tp not in self._results]

    async def _asked_again(self, rows: Sequence[PlanRow]) -> Sequence[PlanRow]:
        changed = [row for row in rows if self._survey.reconnected(row.leader)]
        if not changed:
            return rows
        found = await self._survey.of(changed)
        for row in changed:
            self._judge(row, found[row.tp], order_is_ours=row.tp in self._written)
        return [row for row in rows if row.tp not in self._results]

    def _awaits_order(self, row: PlanRow, state: State) -> bool:
        """Whether our order is not visible yet; finishes a row that must not be elected any more."""
        if isinstance(state, Unknown):
            return True
        written = row.tp in self._written
        survey = self._surveys[row.tp]
        if state == (survey.state._replace(replicas=row.order) if written else survey.state):
            return False  # nothing but our order has changed since the row was judged
        now = None if state is None else with_state(survey, state)
        self._judge(row, now, order_is_ours=written)
        # An order that an earlier attempt wrote may never come, and this election may not need it.
        return (
            written
            and row.tp in self._by_our_order
            and state is not None
            and row.tp not in self._results
            and state.replicas != row.order
        )

    async def _send_election(
        self, rows: Sequence[PlanRow]
    ) -> Mapping[TopicPartition, PartitionRefusal | None]:
        return await self._api.elect([row.tp for row in rows], preferred=False)

    async def _read_back(self, rows: Sequence[PlanRow]) -> None:
        """Waits until a caught-up broker shows a leader under a newer epoch."""
        waiting = await read_until_settled(self._api.states, rows, READ_BACK_FOR, self._shows_leader)
        self._read_back_done = True
        for row in waiting:
            why = self._why_in_doubt.get(row.tp)
            doubt = f" ({why})" if why else ""
            self._results.fail(
                row, f"no leader was seen within {READ_BACK_FOR:g} s of the election{doubt}", retryable=True
            )

    def _shows_leader(self, row: PlanRow, state: State) -> bool:
        """Whether the row is finished; if so, records its result."""
        if isinstance(state, Unknown):
            return False
        if state is not None and state.topic_id == row.topic_id:
            if state.leader_epoch <= row.leader_epoch:
                return False
            if state.offline:
                if self._sent.election_in_doubt(row.tp):
                    return False  # it may still be carried out
                self._results.lost_again(row, state)
                return True
            self._led(row, with_state(self._surveys[row.tp], state))
            return True
        self._sent.requests.led([row.tp])  # the topic was created again
        self._judge(
            row, None if state is None else with_state(self._surveys[row.tp], state), order_is_ours=True
        )
        return True

    def _led(self, row: PlanRow, now: Survey) -> None:
        """The row has a leader, elected by us or by another client."""
        self._sent.requests.led([row.tp])
        state, found = now.state, judge_leader(row, now)
        if found.decision is RowDecision.OTHER_LEADER:
            self._results.end(row, Outcome.OTHER_LEADER, found, state)
        elif state.leader == row.leader and row.tp in self._sent.asked:
            self._results.end(row, Outcome.ELECTED, found._replace(detail=""), state)
        else:
            self._results.end(row, Outcome.ALREADY_ONLINE, found, state)

    # Revert.

    async def _undo(self) -> None:
        """Reverts the orders that this batch wrote, except while one of our elections may still be carried
        out; the row's result says which order stays.
        """
        if self._unanswered is not None:
            await end_reorder(self._unanswered, self._api, self._sent)
            self._unanswered = None
        alive = await self._elections_alive()
        for row in alive:
            self._results.order_stays(row)
        rows = [row for row in self._written.values() if row not in alive]
        # Asked before the revert: the write may come between it and its answer.
        doubtful = {row.tp for row in rows if self._sent.order_in_doubt(row.tp)}
        problems = await revert_assignments(self._api, [row.written_order for row in rows], self._sent)
        for row in rows:
            if row.tp in problems:
                self._results.not_reverted(row, f"assignment order not reverted: {problems[row.tp]}")
                self._results.retryable.discard(row.tp)
            elif row.tp in doubtful:
                self._results.not_reverted(row, ORDER_IN_DOUBT)

    def _say_what_may_come(self) -> None:
        """The rows whose order was not written: nothing of theirs stays, and only the request may still come."""
        for row in self.rows:
            if row.tp not in self._written and self._sent.election_in_doubt(row.tp):
                self._results.may_come(row)

    async def _elections_alive(self) -> list[PlanRow]:
        """The rows whose partition has no leader while an election of ours may still be carried out."""
        rows = [row for row in self._written.values() if self._sent.election_in_doubt(row.tp)]
        if not rows or self._read_back_done:
            return rows
        try:
            return await read_until_settled(
                self._api.states, rows, CANCELLED_READ_BACK_FOR, self._shows_leader
            )
        except BackendError:
            return [row for row in rows if self._sent.election_in_doubt(row.tp)]


async def _to_the_end(undoing: Coroutine[Any, Any, None]) -> None:
    """Waits for it even if this task is cancelled meanwhile; a second cancellation stops it."""
    me = asyncio.current_task()
    if me is not None and me.cancelling():
        await undoing
        return
    task = asyncio.ensure_future(undoing)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise
