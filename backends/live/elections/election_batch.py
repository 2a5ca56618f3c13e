"""One batch of designated elections: checked, reordered, elected, read back, restored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, NamedTuple

from backends.base.answers import Designation, Election, Outcome
from backends.base.errors import BackendError
from backends.base.protocol import Recorder
from backends.live.elections.election_api import ElectionApi, ElectionRefusal
from backends.live.elections.journal_entries import answered, failed, may_pass, record, surely_not_done
from backends.live.elections.order_restore import put_back
from recovery.assignment_order import blocked_by_last_known_leader, needs_reorder, state_changed
from recovery.model import PartitionState, Standing, TopicPartition, Unknown, Why
from recovery.standing import standing

ORDER_SEEN_FOR = 3.0
"""Seconds in which a caught-up broker must show an order that the controller took."""

READ_BACK_FOR = 10.0
"""Seconds in which a caught-up broker must show the election; the controller needs some milliseconds."""


class _Look(NamedTuple):
    """One row as it was right before it was sent."""

    state: PartitionState
    standings: Mapping[int, Standing]


class Batch:
    """At most 1,000 rows. ``passing`` are the rows whose failure may pass.

    ``sent`` is shared by all attempts at the same rows: the state of each partition before anything was sent for
    it, so that an election of ours is judged by whom it elected although only a later look sees the leader.
    """

    native = False
    """Whether the cluster elects the designated leaders itself: then no order matters."""

    def __init__(
        self,
        api: ElectionApi,
        rows: Sequence[Designation],
        recorder: Recorder,
        sent: dict[TopicPartition, PartitionState] | None = None,
    ) -> None:
        self.rows = tuple(rows)
        self._sent = {} if sent is None else sent
        self.passing: set[TopicPartition] = set()
        self._api = api
        self._recorder = recorder
        self._ended: dict[TopicPartition, Election] = {}
        self._looks: dict[TopicPartition, _Look] = {}
        self._doubts: dict[TopicPartition, str] = {}
        self._written: set[TopicPartition] = set()

    async def run(self) -> Mapping[TopicPartition, Election]:
        """One result a row. Whatever happens on the way, every order that was written is put back.

        Raises nothing but cancellation, and that only after restoring was tried; being cancelled once while
        restoring does not stop it.
        """
        ready: list[Designation] = []
        written: list[Designation] = []
        try:
            ready = await self._checked(self.rows)
            await self._reorder([row for row in ready if self._must_reorder(row)], written)
            await self._elect([row for row in ready if row.tp not in self._ended])
            await self._read_back([row for row in ready if row.tp not in self._ended])
        except BackendError as error:
            for row in self.rows:
                self._fail(row, str(error), passing=may_pass(error))
        finally:
            if written:
                await _to_the_end(self._undo(written))
        return self._ended

    # Fences.

    async def _checked(self, rows: Sequence[Designation]) -> list[Designation]:
        tps = [row.tp for row in rows]
        cluster, states, reassigning, changed, blocks = await asyncio.gather(
            self._api.cluster(),
            self._api.states(tps),
            self._api.reassigning(tps),
            self._api.changed_logs({row.tp: row.candidate_logs for row in rows}),
            self._api.blocks_on_dead_last_known_leader(),
        )
        brokers = {broker.id: broker for broker in cluster.brokers}
        for row in rows:
            state = states.get(row.tp)
            if state is None:
                self._end(row, Outcome.STALE, "the partition does not exist any more")
                continue
            if isinstance(state, Unknown):
                self._fail(row, f"its state cannot be had: {state}", passing=_may_change(state))
                continue
            look = _Look(state, {broker: standing(state, broker, brokers) for broker in state.replicas})
            self._looks[row.tp] = look
            self._judge(row, look, row.tp in reassigning, changed.get(row.tp, {}), blocks)
        return [row for row in rows if row.tp not in self._ended]

    def _judge(
        self,
        row: Designation,
        look: _Look,
        reassigning: bool,
        changed: Mapping[int, str | Unknown],
        blocks: bool,
    ) -> None:
        """Ends a row whose election may not be sent."""
        state = look.state
        if not state.offline and state.topic_id == row.topic_id:
            if row.tp in self._sent and state.leader_epoch > row.leader_epoch:
                self._led(row, state)
            else:
                self._end(row, Outcome.ALREADY_ONLINE, f"led by {state.leader}", state)
            return
        stale = state_changed(row, state)
        stale = stale or ("a reassignment is in progress" if reassigning else None)
        stale = stale or next((what for what in changed.values() if isinstance(what, str)), None)
        if stale:
            self._end(row, Outcome.STALE, stale, state)
            return
        chosen = look.standings[row.leader]
        if chosen is not Standing.ELECTABLE:
            self._fail(row, f"{row.leader} cannot be elected: {chosen}", passing=True)
        elif row.leader not in row.candidate_logs:
            self._fail(row, f"the log of {row.leader} was never looked at")
        elif isinstance(silent := changed.get(row.leader), Unknown):
            self._unanswered(row, silent)
        elif self.native:
            return
        elif Standing.UNREGISTERED in look.standings.values() and self._must_reorder(row):
            missing = [b for b, s in look.standings.items() if s is Standing.UNREGISTERED]
            self._fail(row, f"the assignment cannot be reordered: broker {missing[0]} is not registered")
        elif blocks and (member := blocked_by_last_known_leader(state, look.standings)) is not None:
            self._fail(
                row,
                f"this release elects only {member}, the dead last-known leader (KAFKA-19522, mended in 4.1):"
                f" bring {member} back, or upgrade the controllers",
            )

    def _must_reorder(self, row: Designation) -> bool:
        return not self.native and needs_reorder(row.replicas, row.order, self._looks[row.tp].standings)

    # Reorder.

    async def _reorder(self, rows: Sequence[Designation], written: list[Designation]) -> None:
        """Writes the orders; ``written`` has every row that must be put back, also when this is cut off."""
        if not rows:
            return
        entry = record(self._recorder, "reorder", rows)
        written.extend(rows)
        try:
            answers = await self._api.write_orders({row.tp: row.order for row in rows})
        except BackendError as error:
            self._recorder.after(entry, failed(rows, error))
            if surely_not_done(error):
                written.clear()
            self._was_sent(written)
            raise
        answers = {row.tp: answers.get(row.tp) for row in rows}
        self._recorder.after(entry, answered(answers))
        for row in rows:
            answer = answers[row.tp]
            if answer is not None:
                if not answer.doubtful:
                    written.remove(row)
                self._fail(row, f"the assignment could not be reordered: {answer}", passing=answer.passing)
        self._written = {row.tp for row in written}
        self._was_sent(written)

    def _was_sent(self, rows: Sequence[Designation]) -> None:
        for row in rows:
            self._sent.setdefault(row.tp, self._looks[row.tp].state)

    # Elect.

    async def _elect(self, rows: Sequence[Designation]) -> None:
        """Looks at the orders and asks the chosen replicas once more, then holds the election."""
        rows = await self._in_order(rows)
        fences = {row.tp: {row.leader: row.candidate_logs[row.leader]} for row in rows}
        changed = await self._api.changed_logs(fences) if rows else {}
        for row in rows:
            what = changed.get(row.tp, {}).get(row.leader)
            if isinstance(what, str):
                self._end(row, Outcome.STALE, what)
            elif what is not None:
                self._unanswered(row, what)
        rows = [row for row in rows if row.tp not in self._ended]
        if not rows:
            return
        entry = record(self._recorder, "elect", rows)
        try:
            answers = await self._hold(rows)
        except BackendError as error:
            self._recorder.after(entry, failed(rows, error))
            if surely_not_done(error):
                raise
            self._was_sent(rows)
            self._doubts.update({row.tp: f" ({error})" for row in rows})
            return
        answers = {row.tp: answers.get(row.tp) for row in rows}
        self._recorder.after(entry, answered(answers))
        self._was_sent([row for row in rows if (answer := answers[row.tp]) is None or answer.doubtful])
        for row in rows:
            answer = answers[row.tp]
            if answer is not None and answer.doubtful:
                self._doubts[row.tp] = f" ({answer})"
            elif answer is not None and not answer.not_needed:
                self._fail(row, f"not elected: {answer}", passing=answer.passing)

    async def _in_order(self, rows: Sequence[Designation]) -> list[Designation]:
        """Those whose assignment is as the election is to follow it: what this batch wrote somebody else's run may
        have put back for its own, and without it Kafka would elect another.
        """
        written = [row for row in rows if row.tp in self._written]
        waiting = await self._watched(written, ORDER_SEEN_FOR, self._shows_order)
        for row in waiting:
            what = "the order that was written is not seen to stand: a broker is behind, or another run put it back"
            self._fail(row, what, passing=True)
        return [row for row in rows if row.tp not in self._ended]

    def _shows_order(self, row: Designation, state: PartitionState | Unknown | None) -> bool:
        """Whether there is nothing to wait for; ends a row that is not to be elected any more."""
        if state is None:
            self._end(row, Outcome.STALE, "the partition does not exist any more")
        elif isinstance(state, Unknown):
            return False
        elif not state.offline and state.leader_epoch > row.leader_epoch:
            self._led(row, state)
        elif state.replicas not in (row.order, row.replicas):
            self._end(row, Outcome.STALE, f"the assignment is now {list(state.replicas)}", state)
        else:
            return state.replicas == row.order
        return True

    async def _hold(self, rows: Sequence[Designation]) -> Mapping[TopicPartition, ElectionRefusal | None]:
        return await self._api.elect([row.tp for row in rows], preferred=False)

    async def _read_back(self, rows: Sequence[Designation]) -> None:
        """Waits until a caught-up broker shows a leader under a newer epoch."""
        waiting = await self._watched(rows, READ_BACK_FOR, self._shows_leader)
        for row in waiting:
            what = (
                f"no leader was seen within {READ_BACK_FOR:g} s of the election{self._doubts.get(row.tp, '')}"
            )
            self._fail(row, what, passing=True)

    def _shows_leader(self, row: Designation, state: PartitionState | Unknown | None) -> bool:
        """Whether there is nothing to wait for, and then how the row ended."""
        if state is None:
            self._end(row, Outcome.STALE, "the partition does not exist any more")
        elif isinstance(state, Unknown):
            return False
        elif state.topic_id != row.topic_id:
            self._end(row, Outcome.STALE, "the topic was deleted and made again", state)
        elif state.offline or state.leader_epoch <= row.leader_epoch:
            return False
        else:
            self._led(row, state)
        return True

    async def _watched(
        self,
        rows: Sequence[Designation],
        seconds: float,
        settled: Callable[[Designation, PartitionState | Unknown | None], bool],
    ) -> list[Designation]:
        """Looks again and again at the rows that are not ``settled``; those that are not so within ``seconds``."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        waiting, pause = list(rows), 0.02
        while waiting:
            states = await self._api.states([row.tp for row in waiting])
            waiting = [row for row in waiting if not settled(row, states.get(row.tp))]
            if not waiting or loop.time() >= deadline:
                break
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.5)
        return waiting

    def _led(self, row: Designation, state: PartitionState) -> None:
        before = self._sent.get(row.tp, self._looks[row.tp].state)
        if state.leader == row.leader:
            self._end(row, Outcome.ELECTED, "", state)
        elif state.leader in (*before.isr, *(before.elr or ())):
            self._end(row, Outcome.ALREADY_ONLINE, f"{state.leader} came back and was elected cleanly", state)
        else:
            self._end(row, Outcome.OTHER_LEADER, f"{state.leader} leads instead of {row.leader}", state)

    # Restore.

    async def _undo(self, written: Sequence[Designation]) -> None:
        """Puts back what this batch wrote; what stays is told in the row."""
        problems = await put_back(self._api, written, self._recorder)
        for row in written:
            if row.tp in problems:
                self._not_restored(row, problems[row.tp])

    def _not_restored(self, row: Designation, problem: str) -> None:
        ended = self._ended.get(row.tp) or Election(row.tp, Outcome.FAILED, -1, -1, "")
        detail = "; ".join(filter(None, (ended.detail, f"assignment order not restored: {problem}")))
        self._ended[row.tp] = ended._replace(detail=detail, restored=False)
        self.passing.discard(row.tp)

    # Ends of rows.

    def _end(
        self, row: Designation, outcome: Outcome, detail: str, state: PartitionState | None = None
    ) -> None:
        leader, epoch = (state.leader, state.leader_epoch) if state else (-1, -1)
        self._ended[row.tp] = Election(row.tp, outcome, leader, epoch, detail)

    def _unanswered(self, row: Designation, why: Unknown) -> None:
        detail = f"the log of {row.leader} could not be asked for again: {why}"
        self._fail(row, detail, passing=_may_change(why))

    def _fail(self, row: Designation, detail: str, *, passing: bool = False) -> None:
        if row.tp in self._ended:
            return
        self._ended[row.tp] = Election(row.tp, Outcome.FAILED, -1, -1, detail)
        if passing:
            self.passing.add(row.tp)


def _may_change(why: Unknown) -> bool:
    return why.why not in (Why.NOT_ALLOWED, Why.NOT_OFFERED)


async def _to_the_end(undoing: Coroutine[Any, Any, None]) -> None:
    """Wait for it although this task is cancelled meanwhile; a second cancellation stops it."""
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
