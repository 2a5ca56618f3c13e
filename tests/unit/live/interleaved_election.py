"""One history of a designated election: what happens to the cluster at each step, and what must hold then.

The product's own code judges the row, reorders, elects, reads back and reverts; time is virtual.
"""

# ruff: noqa: ARG002  # the signatures are the protocol's

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from backends.base.answers import ClusterInfo, Election, Outcome
from backends.base.errors import BackendError, NotAllowed
from backends.live.calls.partition_errors import PartitionRefusal
from backends.live.elections.designate import designate
from recovery.model import NO_LEADER, Broker, PartitionState, ReplicaLog, TopicPartition, Unknown
from recovery.plan.values import PlanRow
from recovery.ranking import Ranking
from tests.unit.live.one_partition import SILENT, TP, NeverStop, replica_log
from tests.unit.live.other_actor import (
    FAULTS,
    LATE,
    REPLICAS,
    WRITE,
    Action,
    Setting,
    State,
    happened,
    start,
)
from tests.unit.live.virtual_time import VirtualTimeLoop

POLLS = 3
"""A poll that repeats itself is a step for the other actor this often."""
TOTAL_SECONDS = 400.0
NOT_NEEDED = PartitionRefusal(84, "ELECTION_NOT_NEEDED", "", retryable=False)
NOBODY_ELIGIBLE = PartitionRefusal(80, "ELIGIBLE_LEADERS_NOT_AVAILABLE", "", retryable=True)
NOT_CONTROLLER = PartitionRefusal(41, "NOT_CONTROLLER", "", retryable=True)


class Died(BaseException):
    """The product's process was killed."""


class Step(NamedTuple):
    """A moment between two steps: everything that may happen here, and what decides how it goes on."""

    call: str
    answers: int
    state: State
    states_shown: tuple[State, ...]


class Interleaved:
    """Implements ``ElectionApi`` and the recorder; at step number n happens what ``script`` has for n."""

    def __init__(self, setting: Setting, row: PlanRow, script: Mapping[int, Action]) -> None:
        self.setting, self.row, self.script = setting, row, script
        self.state = start(setting)
        self.read = self.surveyed = self.listed = self.state
        self.steps: list[Step] = []
        self.wrong: list[str] = []
        self.journal: list[tuple[str, str, Any]] = []
        self.done: list[str] = []
        self.our_leader: int | None = None
        # Somebody else wrote the very order of our plan: that cannot be told from our own write (docs/limits.md).
        self.same_order = False
        self.read_leaders: set[int] = set()
        self.died = self.cancelled = False
        self.task: asyncio.Task[Any] | None = None
        self._answers = 0
        self._last = ("", 0)

    def _step(self, call: str) -> Action | None:
        """Something may happen here; returns what happens to the request itself."""
        if self.died:
            raise Died
        self._last = (call, self._last[1] + 1 if self._last[0] == call else 1)
        if self._last[1] > POLLS:
            return None
        number = len(self.steps)
        self.steps.append(Step(call, self._answers, self.state, (self.read, self.surveyed, self.listed)))
        action = self.script.get(number)
        if action is None:
            return None
        if action in FAULTS.get(call, ()):
            return self._fault(action)
        if action == ("reorder", self.row.order):
            self.same_order = True
        if action == (WRITE,):
            self.done.append(self._name(self.state.late_order))
        self.state = happened(self.state, action)
        return None

    def _name(self, order: tuple[int, ...]) -> str:
        return "reorder" if order == self.row.order else "revert"

    def _fault(self, action: Action) -> Action | None:
        self._answered(action)
        if action == ("die",):
            return action
        if action == ("cancel",):
            self.cancelled = True
            assert self.task is not None
            self.task.cancel()
            return None
        if action == ("not allowed",):
            raise NotAllowed("ALTER", "the cluster", "change it")
        return action

    def _answered(self, answer: object) -> None:
        self._answers = hash((self._answers, answer))

    # Reading.

    async def cluster(self) -> ClusterInfo:
        self._step("cluster")
        self._answered(self.state.live)
        brokers = tuple(Broker(b, "", 0, None, b not in self.state.live) for b in REPLICAS)
        return ClusterInfo("id", brokers, 1, True)

    async def states(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, PartitionState | Unknown]:
        if self._step("states") == ("lost",):
            raise BackendError("connection reset")
        await asyncio.sleep(0)
        found = self.state.partition()
        self.read = self.state
        self.read_leaders.add(found.leader)
        self._answered(found)
        return dict.fromkeys(partitions, found)

    async def reassigning(self, partitions: object) -> frozenset[TopicPartition]:
        self._step("reassigning")
        self._answered(self.state.busy)
        self.listed = self.state
        return frozenset({TP}) if self.state.busy else frozenset()

    async def logs(
        self, states: Sequence[PartitionState], cluster: object, likely: object
    ) -> Mapping[TopicPartition, Mapping[int, ReplicaLog | Unknown]]:
        if self._step("logs") == ("lost",):
            raise BackendError("connection reset")
        await asyncio.sleep(0)
        self.surveyed = self.state
        logs: dict[TopicPartition, Mapping[int, ReplicaLog | Unknown]] = {}
        for state in states:
            brokers = [broker for broker in state.replicas if broker in REPLICAS]
            logs[state.tp] = {
                b: replica_log(*self.state.log(b)) if b in self.state.answering else SILENT for b in brokers
            }
        self._answered(repr(logs))
        return logs

    def connection(self, broker: int) -> object | None:
        return self.state.processes[broker - 1] if broker in REPLICAS else None

    async def blocks_on_dead_last_known_leader(self) -> bool:
        return False

    async def designates(self) -> bool:
        return self.setting.native

    # Changing.

    async def write_orders(
        self, orders: Mapping[TopicPartition, tuple[int, ...]]
    ) -> Mapping[TopicPartition, PartitionRefusal | None]:
        order = orders[TP]
        action = self._step("write_orders")
        if action == ("refused",):
            return {TP: NOT_CONTROLLER}
        if action == ("lost",):
            raise BackendError("connection reset")
        self._check_write(order)
        if action == LATE:
            self.state = self.state._replace(late_order=order)
            raise BackendError("no answer within 30 s")
        self.state = self.state._replace(replicas=order, writer="ours")
        self.done.append(self._name(order))
        return await self._carried_out(action)

    async def elect(
        self, partitions: object, *, preferred: bool
    ) -> Mapping[TopicPartition, PartitionRefusal | None]:
        return await self._elect(self.state.elected)

    async def designate(
        self, leaders: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, PartitionRefusal | None]:
        leader = leaders[TP]

        def designated() -> State:
            can = self.state.leader == NO_LEADER and leader in self.state.live
            return self.state.led_by(leader) if can else self.state

        return await self._elect(designated)

    async def _elect(self, election: Any) -> Mapping[TopicPartition, PartitionRefusal | None]:
        action = self._step("elect")
        if action == ("refused",):
            return {TP: NOT_CONTROLLER}
        self._check_election()
        if action == ("lost",):
            raise BackendError("connection reset")
        if action == LATE:
            self.state = self.state._replace(pending=not self.setting.native)
            raise BackendError("no answer within 30 s")
        before = self.state
        self.state = election()
        if before.leader != NO_LEADER:
            self._answered("not needed")
            return {TP: NOT_NEEDED}
        if self.state.leader == NO_LEADER:
            self._answered("nobody")
            return {TP: NOBODY_ELIGIBLE}
        self.our_leader = self.state.leader
        self.done.append("elect")
        return await self._carried_out(action)

    async def _carried_out(self, action: Action | None) -> Mapping[TopicPartition, PartitionRefusal | None]:
        if action == ("die",):
            self.died = True
            raise Died
        self._step("answer")
        if action == ("no answer",):
            raise BackendError("no answer within 30 s")
        await asyncio.sleep(0)
        self._answered("done")
        return {TP: None}

    # The journal.

    def before(self, action: str, detail: object) -> str:
        if not self.died:
            self._step("journal")
            self.journal.append(("before", action, None))
        return action

    def after(self, entry: str, detail: Mapping[str, object]) -> None:
        if not self.died:
            self.journal.append(("after", entry, detail))

    # What must hold.

    def _check_write(self, order: tuple[int, ...]) -> None:
        """An order is written only over one of ours, of the same topic, where nobody reassigns: as it was read."""
        if ("before", self._name(order), None) not in self.journal:
            self.wrong.append("an order was written that the journal does not announce")
        read = self.read
        if read.replicas not in (self.row.replicas, self.row.order) or read.topic_id != self.row.topic_id:
            self.wrong.append(f"{order} was written over {read.replicas} of topic {read.topic_id}")
        if self.listed.busy:
            self.wrong.append(f"{order} was written over a reassignment in progress")
        if order == self.row.order and read.leader != NO_LEADER:
            self.wrong.append("a partition with a leader was reordered")

    def _check_election(self) -> None:
        """When it was sent, the state that was read last allowed it, and so did the logs that were read."""
        row, read = self.row, self.read
        planned = row.candidate(row.leader)
        assert planned is not None
        log = (planned.last_epoch, planned.log_end)
        if (read.topic_id, read.epoch, read.leader) != (row.topic_id, row.leader_epoch, NO_LEADER):
            self.wrong.append(f"an election was sent on {read.partition()}")
        expected = row.leader if self.setting.native and row.leader in read.live else read.elected().leader
        if expected != row.leader:
            self.wrong.append(f"an election was sent that elects {expected}")
        if read.log(row.leader) != log:
            self.wrong.append(f"an election was sent of the log {read.log(row.leader)}, planned {log}")
        for broker in read.live & set(REPLICAS):
            answered = broker in self.surveyed.answering or broker not in self.setting.live
            known = broker in self.setting.answering and broker in self.setting.live
            if answered and not known and read.log(broker) > log:
                self.wrong.append(f"an election was sent although {broker} has a better log")

    def check_end(self, election: Election | None) -> None:
        """What is left behind, and whether the result says so."""
        state, row = self.state, self.row
        ours = state.topic_id == row.topic_id and state.writer == "ours" and state.replicas != row.replicas
        late = state.topic_id == row.topic_id and state.late_order == row.order != row.replicas
        late = late and not self.same_order
        self._check_journal(open_order=ours, late=late)
        if ours and state.pending and state.leader == NO_LEADER:
            later = state.elected().leader
            if row.leader in state.live and later != row.leader:
                self.wrong.append(f"an election that is on its way elects {later}")
        elif not ours and state.pending and state.leader == NO_LEADER and state.writer == "ours":
            later = state.elected().leader
            if row.leader in state.live and later != row.leader and state.topic_id == row.topic_id:
                self.wrong.append(f"the order was reverted, and the election on its way elects {later}")
        if election is None:
            return
        if ours and election.reverted:
            self.wrong.append(f"the order is left as {state.replicas}, and nobody is told")
        if late and election.reverted:
            self.wrong.append(f"the order {state.late_order} may still be written, and nobody is told")
        if election.leader != NO_LEADER and election.leader not in self.read_leaders:
            self.wrong.append(f"{election.leader} is told to lead, and was never read as the leader")
        right = {
            Outcome.ELECTED: election.leader == row.leader,
            Outcome.ALREADY_ONLINE: election.leader in (row.leader, *row.clean_electors),
            Outcome.OTHER_LEADER: election.leader not in (NO_LEADER, row.leader),
        }
        if not right.get(election.outcome, True):
            self.wrong.append(f"{election.outcome} with {election.leader}, planned {row.leader}")
        if (
            election.outcome is Outcome.STALE
            and self.our_leader == row.leader
            and self.state.topic_id == row.topic_id
        ):
            self.wrong.append("our own election is told as stale")

    def _check_journal(self, *, open_order: bool, late: bool) -> None:
        done = {*self.done, *(["reorder"] if self.same_order else [])}
        for kind, action, detail in self.journal:
            if kind == "after" and TP in detail.get("applied", ()) and action not in done:
                self.wrong.append(f"the journal says that {action} was applied")
            if (
                kind == "after"
                and TP in detail.get("refused", ())
                and self.done.count(action) > self._begun(action) - 1
            ):
                self.wrong.append(f"the journal says that {action} was refused")
        known = False
        for kind, action, detail in self.journal:
            if action == "reorder":
                known = kind == "before" or TP not in detail.get("refused", ())
            elif action == "revert" and kind == "after":
                known = known and TP not in detail.get("applied", ())
        if open_order and not known and not self._in_doubt():
            self.wrong.append("an order of ours is left, and the journal does not know it")
        if late and not self._in_doubt():
            self.wrong.append("an order of ours may still be written, and the journal does not know it")

    def _in_doubt(self) -> bool:
        """Whether a write of our order has no end in the journal that says what became of it."""
        ended = [detail for kind, name, detail in self.journal if (kind, name) == ("after", "reorder")]
        settled = sum(TP in detail.get("applied", ()) or TP in detail.get("refused", ()) for detail in ended)
        return self._begun("reorder") > settled

    def _begun(self, action: str) -> int:
        return sum(kind == "before" and name == action for kind, name, _ in self.journal)


def run(loop: VirtualTimeLoop, setting: Setting, row: PlanRow, script: Mapping[int, Action]) -> Interleaved:
    """One history, checked."""
    cluster = Interleaved(setting, row, script)
    began = loop.now

    async def job() -> Election:
        (election,) = await designate(
            cluster, [row], Ranking.LAST_RECORD, cluster, attempts=1, stop=NeverStop()
        )
        return election

    async def ended() -> Election | None:
        task = asyncio.ensure_future(job())
        cluster.task = task
        try:
            return await task
        except (Died, asyncio.CancelledError, BackendError):
            return None

    election = loop.run_until_complete(ended())
    if loop.now - began > TOTAL_SECONDS:
        cluster.wrong.append(f"it took {loop.now - began:.0f} s")
    cluster.check_end(election)
    return cluster
