"""Reverts assignments to their original order, and makes sure that they are."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from backends.base.errors import BackendError
from backends.base.protocol import Recorder
from backends.live.elections.election_api import ElectionApi
from backends.live.elections.journal_entries import answered, failed, may_pass, record, surely_not_done
from backends.live.elections.sent_elections import ORDER_VISIBLE_WITHIN, UnansweredWrite
from recovery.assignment_order import WrittenOrder
from recovery.model import TopicPartition, Unknown
from recovery.requests_in_doubt import REVERT

REVERT_FOR = 15.0
"""Seconds of retries before the revert is left to ``resume``."""


async def revert_assignments(
    api: ElectionApi, rows: Sequence[WrittenOrder], recorder: Recorder
) -> Mapping[TopicPartition, str]:
    """Writes each row's own order where nobody else changed it; why not, for each row in which it is not back.

    Tries again while it fails with a retryable error. Raises nothing but cancellation.
    """
    return await _Reverting(api, recorder).run(rows)


class _Reverting:
    def __init__(self, api: ElectionApi, recorder: Recorder) -> None:
        self._api = api
        self._recorder = recorder
        # The last write, where its answer did not come or was not understood; its end is not recorded yet.
        self._doubt: UnansweredWrite | None = None
        # When a row of it first, and last, stood in its own order after it (seconds of the loop's clock).
        self._order_stands: dict[TopicPartition, tuple[float, float]] = {}

    async def run(self, rows: Sequence[WrittenOrder]) -> Mapping[TopicPartition, str]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + REVERT_FOR
        pause = 0.1
        try:
            while True:
                try:
                    return await self._once(rows, loop.time())
                except BackendError as error:
                    if not may_pass(error) or loop.time() >= deadline:
                        return {row.tp: str(error) for row in rows if not self._is_back(row.tp)}
                await asyncio.sleep(pause)
                pause = min(pause * 2, 2.0)
        finally:
            self._record_doubtful_write()

    async def _once(self, rows: Sequence[WrittenOrder], now: float) -> dict[TopicPartition, str]:
        """Writes the original order if the current one is ours; returns the reason for each other row.

        Where the original order stands it is written too: a broker that is a moment behind the controller does not
        show the other one yet, and a request whose answer never came may still be carried out after this look,
        but before this write. A row whose topic is gone is no problem. Raises BackendError where it may be tried
        again.
        """
        tps = [row.tp for row in rows]
        states, reassigning = await asyncio.gather(self._api.states(tps), self._api.reassigning(tps))
        ours: list[WrittenOrder] = []
        problems: dict[TopicPartition, str] = {}
        for row in rows:
            state = states.get(row.tp)
            if isinstance(state, Unknown):
                problems[row.tp] = f"its state could not be read: {state}"
            elif state is None or state.topic_id != row.topic_id:
                continue
            elif row.tp in reassigning:
                problems[row.tp] = "a reassignment is in progress; left alone"
            elif state.replicas not in (row.order, row.replicas):
                now_is = list(state.replicas)
                problems[row.tp] = f"the assignment is now {now_is}, not what was written; left alone"
            elif not self._shows_original(row, state.replicas, now):
                ours.append(row)
        self._record_doubtful_write()
        if ours:
            problems.update(await self._write(ours))
        return problems

    def _record_doubtful_write(self) -> None:
        """Records the end of the write in doubt, from the state read since then."""
        if self._doubt is None:
            return
        doubtful, self._doubt = self._doubt, None
        doubtful.end(self._recorder, [row.tp for row in doubtful.rows if self._is_back(row.tp)])

    def _shows_original(self, row: WrittenOrder, replicas: tuple[int, ...], now: float) -> bool:
        """Whether the original order has been visible for long enough after an unanswered write."""
        if replicas != row.replicas:
            self._order_stands.pop(row.tp, None)
        elif self._doubt is not None or row.tp in self._order_stands:
            self._order_stands[row.tp] = self._order_stands.get(row.tp, (now, now))[0], now
        return self._is_back(row.tp)

    def _is_back(self, tp: TopicPartition) -> bool:
        """Counts only successful readings: failed ones say nothing."""
        first, last = self._order_stands.get(tp, (0.0, 0.0))
        return last - first >= ORDER_VISIBLE_WITHIN

    async def _write(self, rows: Sequence[WrittenOrder]) -> Mapping[TopicPartition, str]:
        entry = record(self._recorder, REVERT, rows)
        try:
            answers = await self._api.write_orders({row.tp: row.replicas for row in rows})
        except BackendError as error:
            if surely_not_done(error):
                self._recorder.after(entry, failed(rows, error))
            else:
                self._doubt = UnansweredWrite(entry, rows, error)
            raise
        refused = {tp: answer for tp, answer in answers.items() if answer is not None}
        reported = {
            tp: f"somebody else changed the number of replicas ({answer}); left alone"
            if answer.other_factor
            else str(answer)
            for tp, answer in refused.items()
        }
        self._recorder.after(entry, answered({row.tp: answers.get(row.tp) for row in rows}))
        retryable = next((str(answer) for answer in refused.values() if answer.retryable), None)
        if retryable is not None:
            raise BackendError(retryable)
        return reported
