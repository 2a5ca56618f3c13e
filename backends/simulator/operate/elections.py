"""Elections of the operator on a simulated cluster: ElectLeaders v3 designates natively."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from backends.base.answers import ClusterInfo, Designation, Election, Outcome
from backends.base.errors import BackendError, Unreachable
from backends.base.protocol import Progress, Recorder, Stop
from backends.simulator.loop import MILLISECOND, SECOND
from backends.simulator.messages import (
    ElectLeaders,
    ElectLeadersReply,
    Reassign,
    ReassignReply,
)
from backends.simulator.network import broker as node
from backends.simulator.operate.calls import NATIVE_ELECTIONS
from backends.simulator.operate.operator_client import OperatorClient, check
from backends.simulator.operate.session_store import SessionStore
from backends.simulator.operator_messages import (
    GetReplicaLogInfo,
    LineageRead,
    ListReassignments,
    ReadLineage,
    ReassignmentsListed,
    ReplicaLogInfos,
)
from recovery.assignment_order import state_changed
from recovery.controller.controller_errors import ControllerError, ControllerRefusal
from recovery.controller.transition_targets import ElectionKind as Kind
from recovery.model import NO_LEADER, PartitionState, Standing, TopicPartition
from recovery.standing import standing

BATCH = 1000
BACKOFF = SECOND
READ_BACK_FOR = 10 * SECOND
READ_BACK_PAUSE = 20 * MILLISECOND

Ended = dict[TopicPartition, Election]


class Elections:
    """Everything that is sent is recorded first, by the recorder and in the kept state."""

    def __init__(self, asking: OperatorClient, kept: SessionStore) -> None:
        self._asking = asking
        self._kept = kept

    def _send(self, body: ElectLeaders | Reassign, doing: str) -> Any:
        asked, _ = self._asking.caught_up()
        self._kept.sent(node(asked), body)
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
            recorder.after(entry, {"unknown": {tp: str(error) for tp in partitions or ()}})
            raise
        refused = {tp: refusal for tp, refusal in reply.refusals.items() if refusal is not None}
        held = [tp for tp in reply.refusals if tp not in refused]
        recorder.after(entry, {"applied": held, "refused": {tp: str(why) for tp, why in refused.items()}})
        states = self._read_back(list(reply.refusals), dict.fromkeys(held, NO_LEADER))
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
        """The states, asked again until each that is ``wanted`` has a leader."""
        deadline = self._asking.now + READ_BACK_FOR
        while True:
            states = self._states(asked) if asked else {}
            waiting = [tp for tp in wanted if tp not in states or states[tp].offline]
            if not waiting or self._asking.now >= deadline:
                return states
            self._asking.wait(READ_BACK_PAUSE)

    # Designated elections.

    def designate(
        self,
        look: Callable[[], ClusterInfo],
        rows: Sequence[Designation],
        recorder: Recorder,
        *,
        attempts: int,
        stop: Stop,
        progress: Progress | None,
    ) -> tuple[Election, ...]:
        """One result a row, in the order given; a retry repeats every check."""
        ended: Ended = {}
        waiting = list(rows)
        for attempt in range(attempts + 1):
            if attempt:
                self._asking.wait(BACKOFF)
            again: list[Designation] = []
            for first in range(0, len(waiting), BATCH):
                if stop:
                    break
                again += self._batch(look, waiting[first : first + BATCH], recorder, ended)
                if progress is not None:
                    progress("electing", len(ended) - len(again), len(rows))
            waiting = again
            if not waiting or stop:
                break
        return tuple(
            ended.get(row.tp) or Election(row.tp, Outcome.NOT_ATTEMPTED, -1, -1, "stopped before its turn")
            for row in rows
        )

    def _batch(
        self,
        look: Callable[[], ClusterInfo],
        rows: Sequence[Designation],
        recorder: Recorder,
        ended: Ended,
    ) -> list[Designation]:
        """Ends each row, for now or for good; returns those that may be tried again."""
        again: list[Designation] = []
        try:
            ready = self._checked(look(), rows, ended, again)
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

    def _checked(
        self, cluster: ClusterInfo, rows: Sequence[Designation], ended: Ended, again: list[Designation]
    ) -> list[Designation]:
        """The rows whose fences all hold; the others are ended."""
        states = self._states([row.tp for row in rows])
        logs = self._logs(rows)
        brokers = {broker.id: broker for broker in cluster.brokers}
        ready = []
        for row in rows:
            state = states.get(row.tp)
            if state is None:
                ended[row.tp] = Election(
                    row.tp, Outcome.STALE, -1, -1, "the partition does not exist any more"
                )
                continue
            leader, epoch = state.leader, state.leader_epoch
            if not state.offline:
                outcome, detail = Outcome.ALREADY_ONLINE, f"led by {leader}"
            elif stale := _stale(row, state, logs):
                outcome, detail = Outcome.STALE, stale
            elif (held := standing(state, row.leader, brokers)) is not Standing.ELECTABLE:
                outcome, detail = Outcome.FAILED, f"{row.leader} cannot be elected: {held}"
                again.append(row)
            else:
                ready.append(row)
                continue
            ended[row.tp] = Election(row.tp, outcome, leader, epoch, detail)
        return ready

    def _logs(self, rows: Sequence[Designation]) -> dict[tuple[TopicPartition, int], tuple[int | None, int]]:
        """(epoch of the last record or None, log end) of every candidate that answers now."""
        wanted: dict[int, list[TopicPartition]] = {}
        for row in rows:
            for candidate in row.candidate_logs:
                wanted.setdefault(candidate, []).append(row.tp)
        brokers = sorted(wanted)
        infos = self._asking.all([(node(b), GetReplicaLogInfo(tuple(wanted[b]))) for b in brokers])
        epochs = self._asking.all([(node(b), ReadLineage(tuple(wanted[b]))) for b in brokers])
        found: dict[tuple[TopicPartition, int], tuple[int | None, int]] = {}
        for candidate, told, read in zip(brokers, infos, epochs, strict=True):
            lineages = {row.tp: row.told for row in read.logs} if isinstance(read, LineageRead) else {}
            for info in told.infos if isinstance(told, ReplicaLogInfos) else ():
                read_log = lineages.get(info.tp)
                if info.error is None:
                    last = None if read_log is None else read_log.lineage.last_epoch
                    found[info.tp, candidate] = (last, info.log_end_offset)
        return found

    # Orders.

    def restore(self, rows: Sequence[Designation], recorder: Recorder) -> tuple[Election, ...]:
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
        told = self._asking.one(node(asked), ListReassignments(tuple(tps)))
        if isinstance(told, ReassignmentsListed) and told.error is not None:
            check(told.error, "DESCRIBE", "list reassignments")
        if not isinstance(told, ReassignmentsListed):
            raise Unreachable("whether a reassignment is in progress could not be asked: nothing is restored")
        return frozenset(row[0] for row in told.rows)

    def _restore(self, rows: Sequence[Designation], recorder: Recorder) -> dict[TopicPartition, str]:
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


def _stale(
    row: Designation,
    state: PartitionState,
    logs: Mapping[tuple[TopicPartition, int], tuple[int | None, int]],
) -> str | None:
    changed = state_changed(row, state)
    if changed is not None:
        return changed
    for candidate, (epoch, end) in row.candidate_logs.items():
        now = logs.get((row.tp, candidate))
        if now is None:
            if candidate == row.leader:
                return f"the log of {candidate} could not be had again"
            continue
        if now[1] != end or (epoch is not None and now[0] is not None and now[0] != epoch):
            return f"the log of {candidate} ends at {now[1]} in epoch {now[0]}, was {end} in {epoch}"
    return None


def _ended(row: Designation, refusal: ControllerRefusal | None, state: PartitionState | None) -> Election:
    leader, epoch = (state.leader, state.leader_epoch) if state else (NO_LEADER, -1)
    if refusal is not None:
        needless = refusal.error is ControllerError.ELECTION_NOT_NEEDED
        return Election(
            row.tp, Outcome.ALREADY_ONLINE if needless else Outcome.FAILED, leader, epoch, str(refusal)
        )
    if leader == row.leader:
        return Election(row.tp, Outcome.ELECTED, leader, epoch, NATIVE_ELECTIONS)
    outcome = Outcome.FAILED if leader == NO_LEADER else Outcome.OTHER_LEADER
    return Election(row.tp, outcome, leader, epoch, f"{row.leader} was elected, and {leader} leads now")


def _restored(row: Designation, state: PartitionState | None, problem: str | None) -> Election:
    leader, epoch = (state.leader, state.leader_epoch) if state else (NO_LEADER, -1)
    right = leader == row.leader
    outcome = Outcome.ELECTED if right else Outcome.OTHER_LEADER if leader >= 0 else Outcome.FAILED
    detail = problem or "nothing of ours stands any more"
    if problem is None and state is not None and state.replicas == row.replicas:
        detail = "assignment order restored"
    return Election(row.tp, outcome, leader, epoch, detail, restored=problem is None)
