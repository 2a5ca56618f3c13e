"""Elections of the operator on a simulated cluster: ElectLeaders v3 designates natively."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from backends.base.answers import ClusterInfo, Depth, Election, Outcome, SurveyRequest
from backends.base.errors import BackendError, NotAllowed, Unreachable
from backends.base.protocol import Progress, Recorder, Stop
from backends.simulator.loop import MILLISECOND, SECOND
from backends.simulator.messages import (
    ElectLeaders,
    ElectLeadersReply,
    Reassign,
    ReassignReply,
)
from backends.simulator.network import broker as node
from backends.simulator.operate.operator_client import NATIVE_ELECTIONS, OperatorClient, check
from backends.simulator.operate.session_store import SessionStore
from backends.simulator.operate.survey import NOT_ASKED, SimulatedSurvey
from backends.simulator.operator_messages import (
    ListReassignments,
    ReassignmentsListed,
)
from recovery.assignment_order import WrittenOrder
from recovery.controller.controller_errors import ControllerError, ControllerRefusal
from recovery.controller.transition_targets import ElectionKind as Kind
from recovery.model import (
    NO_LEADER,
    Broker,
    PartitionState,
    Replica,
    ReplicaLog,
    Survey,
    TopicPartition,
    Unknown,
    Why,
)
from recovery.plan.judgement import RowDecision, brokers_to_ask, judge, judge_leader
from recovery.plan.values import PlanRow
from recovery.ranking import Ranking
from recovery.standing import standing

BATCH = 1000
BACKOFF = SECOND
READ_BACK_FOR = 10 * SECOND
READ_BACK_PAUSE = 20 * MILLISECOND
LOGS_WITHIN = 3.0
"""Seconds of virtual time in which every replica has to return its log end right before an election."""

Ended = dict[TopicPartition, Election]


class Elections:
    """Everything that is sent is recorded first, by the recorder and in the saved state."""

    def __init__(self, asking: OperatorClient, session_store: SessionStore) -> None:
        self._asking = asking
        self._session_store = session_store

    def _send(self, body: ElectLeaders | Reassign, doing: str) -> Any:
        asked, _ = self._asking.caught_up()
        self._session_store.sent(node(asked), body)
        operation = "ALTER"
        if isinstance(body, ElectLeaders) and body.kind is Kind.DESIGNATED:
            operation = "CLUSTER_ACTION"
        return check(self._asking.one(node(asked), body), operation, doing)

    def _states(self, tps: Sequence[TopicPartition]) -> dict[TopicPartition, PartitionState]:
        topics = list(dict.fromkeys(tp.topic for tp in tps))
        states, _, _ = self._asking.describe(topics)
        return {state.tp: state for state in states}

    # Preferred and unclean elections.

    def hold(
        self, preferred: bool, partitions: Sequence[TopicPartition] | None, recorder: Recorder
    ) -> tuple[Election, ...]:
        """As Kafka holds them; one result for each partition that the controller answers for."""
        kind = Kind.PREFERRED if preferred else Kind.UNCLEAN
        named: Any = "all" if partitions is None else list(partitions)
        entry = recorder.before("elect", {"election": kind.value.lower(), "partitions": named})
        rows = None if partitions is None else tuple((tp, NO_LEADER) for tp in partitions)
        try:
            reply: ElectLeadersReply = self._send(
                ElectLeaders(kind, rows), f"hold {kind.value.lower()} elections"
            )
        except BackendError as error:
            how = "refused" if isinstance(error, NotAllowed) else "unknown"
            recorder.after(entry, {how: {tp: str(error) for tp in partitions or ()}, "error": str(error)})
            raise
        refused = {tp: refusal for tp, refusal in reply.refusals.items() if refusal is not None}
        answered = [tp for tp in reply.refusals if tp not in refused]
        recorder.after(entry, {"applied": answered, "refused": {tp: str(why) for tp, why in refused.items()}})
        states = self._read_back(list(reply.refusals), dict.fromkeys(answered, NO_LEADER))
        return tuple(self._election(tp, refused.get(tp), states.get(tp)) for tp in reply.refusals)

    def _election(
        self, tp: TopicPartition, refusal: ControllerRefusal | None, state: PartitionState | None
    ) -> Election:
        leader, epoch = (state.leader, state.leader_epoch) if state else (NO_LEADER, -1)
        if refusal is not None:
            needless = refusal.error is ControllerError.ELECTION_NOT_NEEDED
            outcome = Outcome.ALREADY_ONLINE if needless else Outcome.FAILED
            return Election(tp, outcome, leader, epoch, str(refusal))
        outcome = Outcome.ELECTED if leader != NO_LEADER else Outcome.FAILED
        return Election(tp, outcome, leader, epoch, "")

    def _read_back(
        self, asked: Sequence[TopicPartition], wanted: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, PartitionState]:
        """The states, read again until each partition of ``wanted`` has a leader."""
        deadline = self._asking.now + READ_BACK_FOR
        while True:
            states = self._states(asked) if asked else {}
            waiting = [tp for tp in wanted if tp not in states or states[tp].offline]
            if not waiting or self._asking.now >= deadline:
                return states
            self._asking.wait(READ_BACK_PAUSE)

    # Designated elections.

    async def designate(
        self,
        cluster_now: Callable[[], ClusterInfo],
        rows: Sequence[PlanRow],
        ranking: Ranking,
        recorder: Recorder,
        *,
        attempts: int,
        stop: Stop,
        progress: Progress | None,
    ) -> tuple[Election, ...]:
        """One result a row, in the order given; every attempt judges the rows again."""
        ended: Ended = {}
        waiting = list(rows)
        for attempt in range(attempts + 1):
            if attempt:
                self._asking.wait(BACKOFF)
            again: list[PlanRow] = []
            for first in range(0, len(waiting), BATCH):
                if stop:
                    break
                again += await self._batch(
                    cluster_now, waiting[first : first + BATCH], ranking, recorder, ended
                )
                if progress is not None:
                    progress("electing", len(ended) - len(again), len(rows))
            waiting = again
            if not waiting or stop:
                break
        return tuple(
            ended.get(row.tp) or Election(row.tp, Outcome.NOT_ATTEMPTED, -1, -1, "stopped before its turn")
            for row in rows
        )

    async def _batch(
        self,
        cluster_now: Callable[[], ClusterInfo],
        rows: Sequence[PlanRow],
        ranking: Ranking,
        recorder: Recorder,
        ended: Ended,
    ) -> list[PlanRow]:
        """Gives each row a result; returns the rows that may be retried."""
        again: list[PlanRow] = []
        try:
            ready = await self._judged(cluster_now, rows, ranking, ended, again)
        except BackendError as error:
            for row in rows:
                ended[row.tp] = Election(row.tp, Outcome.FAILED, -1, -1, f"{error}; nothing was sent")
            return list(rows)
        if not ready:
            return again
        try:
            entry = recorder.before("elect", {"election": "designated", "rows": list(ready)})
        except Exception as error:  # whatever the recorder raises: nothing may be sent then
            for row in ready:
                ended[row.tp] = Election(row.tp, Outcome.FAILED, -1, -1, f"not recorded, not sent: {error}")
            return again
        body = ElectLeaders(Kind.DESIGNATED, tuple((row.tp, row.leader) for row in ready))
        try:
            reply: ElectLeadersReply = self._send(body, "hold designated elections")
        except BackendError as error:
            recorder.after(entry, {"unknown": {row.tp: str(error) for row in ready}})
            for row in ready:
                ended[row.tp] = Election(row.tp, Outcome.FAILED, -1, -1, str(error))
            return [*again, *ready]
        refused = {tp: refusal for tp, refusal in reply.refusals.items() if refusal is not None}
        applied = [row.tp for row in ready if row.tp not in refused]
        recorder.after(entry, {"applied": applied, "refused": {tp: str(why) for tp, why in refused.items()}})
        states = self._read_back([row.tp for row in ready], dict.fromkeys(applied, NO_LEADER))
        for row in ready:
            ended[row.tp] = _ended(row, refused.get(row.tp), states.get(row.tp))
        return again

    async def _judged(
        self,
        cluster_now: Callable[[], ClusterInfo],
        rows: Sequence[PlanRow],
        ranking: Ranking,
        ended: Ended,
        again: list[PlanRow],
    ) -> list[PlanRow]:
        """The rows whose elections may be sent; the others are ended. The state is read last."""
        tps = [row.tp for row in rows]
        logs = await self._logs(cluster_now(), rows, self._states(tps))
        busy = self._busy(tps)
        brokers = {broker.id: broker for broker in cluster_now().brokers}
        states = self._states(tps)
        ready = []
        for row in rows:
            state = states.get(row.tp)
            now = None if state is None else _survey(state, logs.get(row.tp, {}), brokers, busy)
            found = judge(row, ranking, now)
            if found.decision is RowDecision.SEND:
                ready.append(row)
                continue
            leader, epoch = (state.leader, state.leader_epoch) if state else (NO_LEADER, -1)
            outcome = _OUTCOMES.get(found.decision, Outcome.FAILED)
            ended[row.tp] = Election(row.tp, outcome, leader, epoch, found.detail, reason=found.reason)
            if found.decision is RowDecision.TRY_AGAIN:
                again.append(row)
        return ready

    async def _logs(
        self, cluster: ClusterInfo, rows: Sequence[PlanRow], states: Mapping[TopicPartition, PartitionState]
    ) -> Mapping[TopicPartition, Mapping[int, ReplicaLog | Unknown]]:
        """The log of every replica that could be elected now, or was asked when the plan was made."""
        brokers = {broker.id: broker for broker in cluster.brokers}
        asked = []
        for row in rows:
            if (state := states.get(row.tp)) is not None:
                standings = {broker: standing(state, broker, brokers) for broker in state.replicas}
                asked.append(state._replace(replicas=brokers_to_ask(row, state, standings)))
        request = SurveyRequest(tuple(asked), LOGS_WITHIN, Depth.LAST)
        run = SimulatedSurvey(self._asking, request, cluster.brokers)
        await run.run(None)
        surveys = run.result(dict.fromkeys([state.topic for state in asked], NOT_ASKED), frozenset()).surveys
        return {one.tp: {replica.broker: replica.log for replica in one.replicas} for one in surveys}

    # Orders.

    def restore(self, rows: Sequence[WrittenOrder], recorder: Recorder) -> tuple[Election, ...]:
        """Put back the assignment of rows whose order is ``order``, or their own again, and of no other."""
        if not rows:
            return ()
        tps = [row.tp for row in rows]
        states, busy = self._states(tps), self._reassigning(tps)
        problems: dict[TopicPartition, str] = {}
        mine = []
        for row in rows:
            state = states.get(row.tp)
            if state is None or state.topic_id != row.topic_id:
                continue
            if row.tp in busy:
                problems[row.tp] = "a reassignment is in progress; left alone"
            elif state.replicas in (row.order, row.replicas):
                mine.append(row)
            else:
                now = list(state.replicas)
                problems[row.tp] = f"the assignment is now {now}, not what was written; left alone"
        if mine:
            problems.update(self._restore(mine, recorder))
        after = self._states(tps)
        return tuple(_restored(row, after.get(row.tp), problems.get(row.tp)) for row in rows)

    def _reassigning(self, tps: Sequence[TopicPartition]) -> frozenset[TopicPartition]:
        asked, _ = self._asking.caught_up()
        answer = self._asking.one(node(asked), ListReassignments(tuple(tps)))
        if isinstance(answer, ReassignmentsListed) and answer.error is not None:
            check(answer.error, "DESCRIBE", "list reassignments")
        if not isinstance(answer, ReassignmentsListed):
            raise Unreachable("whether a reassignment is in progress could not be asked")
        return frozenset(row[0] for row in answer.rows)

    def _busy(self, tps: Sequence[TopicPartition]) -> frozenset[TopicPartition] | Unknown:
        try:
            return self._reassigning(tps)
        except Unreachable as error:
            return Unknown(Why.NOT_ANSWERED, str(error))
        except NotAllowed as error:
            return Unknown(Why.NOT_ALLOWED, str(error))

    def _restore(self, rows: Sequence[WrittenOrder], recorder: Recorder) -> dict[TopicPartition, str]:
        entry = recorder.before("restore", {"rows": list(rows)})
        body = Reassign(tuple((row.tp, row.replicas) for row in rows), False)
        try:
            reply: ReassignReply = self._send(body, "restore assignments")
        except BackendError as error:
            recorder.after(entry, {"unknown": {row.tp: str(error) for row in rows}})
            return {row.tp: str(error) for row in rows}
        refused = {tp: str(refusal) for tp, refusal in reply.refusals.items() if refusal is not None}
        applied = [row.tp for row in rows if row.tp not in refused]
        recorder.after(entry, {"applied": applied, "refused": refused})
        return refused


_OUTCOMES = {
    RowDecision.STALE: Outcome.STALE,
    RowDecision.ALREADY_ONLINE: Outcome.ALREADY_ONLINE,
    RowDecision.OTHER_LEADER: Outcome.OTHER_LEADER,
}


def _survey(
    state: PartitionState,
    logs: Mapping[int, ReplicaLog | Unknown],
    brokers: Mapping[int, Broker],
    busy: frozenset[TopicPartition] | Unknown,
) -> Survey:
    replicas = tuple(
        Replica(broker, standing(state, broker, brokers), logs.get(broker, NOT_ASKED))
        for broker in state.replicas
    )
    return Survey(state, replicas, NOT_ASKED, busy if isinstance(busy, Unknown) else state.tp in busy)


def _ended(row: PlanRow, refusal: ControllerRefusal | None, state: PartitionState | None) -> Election:
    leader, epoch = (state.leader, state.leader_epoch) if state else (NO_LEADER, -1)
    needless = refusal is not None and refusal.error is ControllerError.ELECTION_NOT_NEEDED
    if state is None or state.offline or (refusal is not None and not needless):
        detail = f"{row.leader} was elected, and nobody leads now" if refusal is None else str(refusal)
        return Election(row.tp, Outcome.FAILED, leader, epoch, detail)
    if refusal is None and leader == row.leader:
        return Election(row.tp, Outcome.ELECTED, leader, epoch, NATIVE_ELECTIONS)
    found = judge_leader(row, _survey(state, {}, {}, frozenset()))
    return Election(row.tp, _OUTCOMES[found.decision], leader, epoch, found.detail, reason=found.reason)


def _restored(row: WrittenOrder, state: PartitionState | None, problem: str | None) -> Election:
    leader, epoch = (state.leader, state.leader_epoch) if state else (NO_LEADER, -1)
    right = leader == row.leader
    outcome = Outcome.ELECTED if right else Outcome.OTHER_LEADER if leader >= 0 else Outcome.FAILED
    detail = problem or "nothing of ours stands any more"
    if problem is None and state is not None and state.replicas == row.replicas:
        detail = "assignment order restored"
    return Election(row.tp, outcome, leader, epoch, detail, restored=problem is None)
